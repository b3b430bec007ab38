/** The option `maxPerPoll`: how many deliveries may be fetched between two polls. Unlimited when unset. */
export class PollBudget {
  readonly #perPoll: number
  #left: number

  constructor(perPoll: number | null) {
    this.#perPoll = perPoll ?? Number.POSITIVE_INFINITY
    this.#left = this.#perPoll
  }

  get isLimited(): boolean {
    return this.#perPoll !== Number.POSITIVE_INFINITY
  }

  get isSpent(): boolean {
    return this.#left <= 0
  }

  take(wanted: number): number {
    const granted = Math.min(wanted, this.#left)
    this.#left -= granted
    return granted
  }

  giveBack(unused: number): void {
    this.#left = Math.min(this.#left + unused, this.#perPoll)
  }

  refill(): void {
    this.#left = this.#perPoll
  }
}

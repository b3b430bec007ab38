/** Batches work to the end of the event loop's tick. */

export class EndOfTick<T> {
  readonly #work: (item: T) => void
  #waiting = new Set<T>()

  constructor(work: (item: T) => void) {
    this.#work = work
  }

  /** Items are worked on in the order in which they were added, with nothing else in between. An item that is added twice is worked on once. */
  add(item: T): void {
    if (this.#waiting.size === 0) setImmediate(() => this.#run())
    this.#waiting.add(item)
  }

  #run(): void {
    const batch = this.#waiting
    this.#waiting = new Set()
    try {
      for (const item of batch) {
        batch.delete(item)
        this.#work(item)
      }
    } finally {
      // The items behind one that threw.
      for (const item of batch) this.add(item)
    }
  }
}

/** Since when this process can reach its store: from the start, or from the end of the store's last outage. */
export class Uptime {
  #since = 0
  #isDown = true

  get since(): number {
    return this.#since
  }

  reached(now: number): void {
    if (this.#isDown) this.#since = now
    this.#isDown = false
  }

  failed(): void {
    this.#isDown = true
  }
}

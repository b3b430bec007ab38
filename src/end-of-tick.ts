/** Batches work to the end of the event loop tick. */

export class EndOfTick<T> {
  readonly #work: (item: T) => void
  #waiting = new Set<T>()

  constructor(work: (item: T) => void) {
    this.#work = work
  }

  /** Items run in the order in which they were added, without other callbacks in between. An item that is added twice runs once. */
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
      // After an item that threw, the others run in the next tick.
      for (const item of batch) this.add(item)
    }
  }
}

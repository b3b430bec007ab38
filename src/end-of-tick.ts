/** Batches work to the end of the event loop's tick. */

export class EndOfTick<T> {
  readonly #work: (item: T) => void
  #queue: T[] = []

  constructor(work: (item: T) => void) {
    this.#work = work
  }

  /** Items are worked on in the order in which they were added, with nothing else in between. */
  add(item: T): void {
    if (this.#queue.push(item) === 1) setImmediate(() => this.#run())
  }

  #run(): void {
    const batch = this.#queue
    this.#queue = []
    let begun = 0
    try {
      for (const item of batch) {
        begun++
        this.#work(item)
      }
    } finally {
      // The items behind one that threw.
      for (const item of batch.slice(begun)) this.add(item)
    }
  }
}

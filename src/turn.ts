/** What is done together at the end of a turn of the event loop. */

export class EndOfTurn<T> {
  readonly #work: (one: T) => void
  #waiting: T[] = []

  constructor(work: (one: T) => void) {
    this.#work = work
  }

  /** In the order in which they came, with nothing else in between. */
  add(one: T): void {
    if (this.#waiting.push(one) === 1) setImmediate(() => this.#run())
  }

  #run(): void {
    const all = this.#waiting
    this.#waiting = []
    let begun = 0
    try {
      for (const one of all) {
        begun++
        this.#work(one)
      }
    } finally {
      // Behind one that has failed.
      for (const one of all.slice(begun)) this.add(one)
    }
  }
}

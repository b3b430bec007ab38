/**
 * Group commit by natural batching: what is asked for while a batch is under way goes into the next one. Alone, a call waits for
 * nobody; under load the batches grow by themselves.
 */

interface Waiting<In, Out> {
  readonly item: In
  resolve(result: Out): void
  reject(error: unknown): void
}

export interface BatcherOptions {
  /** How many batches may be under way at once. One keeps the order of the calls. */
  readonly atOnce: number
  /** The most that one batch weighs. */
  readonly most: number
}

export class Batcher<In, Out> {
  readonly #write: (items: readonly In[]) => Promise<Out[]>
  readonly #weight: (item: In) => number
  readonly #options: BatcherOptions
  #queue: Waiting<In, Out>[] = []
  #underWay = 0
  #woken = false

  constructor(
    write: (items: readonly In[]) => Promise<Out[]>,
    options: BatcherOptions,
    weight: (item: In) => number = () => 1,
  ) {
    this.#write = write
    this.#options = options
    this.#weight = weight
  }

  add(item: In): Promise<Out> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ item, resolve, reject })
      if (this.#woken) return
      this.#woken = true
      // The calls of one moment go together.
      setImmediate(() => {
        this.#woken = false
        this.#flush()
      })
    })
  }

  #flush(): void {
    while (this.#queue.length > 0 && this.#underWay < this.#options.atOnce) void this.#run(this.#take())
  }

  #take(): Waiting<In, Out>[] {
    let weight = 0
    let count = 0
    while (count < this.#queue.length && (count === 0 || weight < this.#options.most))
      weight += this.#weight(this.#queue[count++]!.item)
    return this.#queue.splice(0, count)
  }

  async #run(batch: readonly Waiting<In, Out>[]): Promise<void> {
    this.#underWay++
    try {
      const results = await this.#write(batch.map(({ item }) => item))
      for (const [i, waiting] of batch.entries()) waiting.resolve(results[i]!)
    } catch (error) {
      for (const waiting of batch) waiting.reject(error)
    }
    this.#underWay--
    this.#flush()
  }
}

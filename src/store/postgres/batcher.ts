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
  /** What comes so soon after a batch waits for others until then: under load a few milliseconds make the batches several times larger. */
  readonly gatherMs?: number
}

export class Batcher<In, Out> {
  readonly #write: (items: readonly In[]) => Promise<Out[]>
  readonly #weight: (item: In) => number
  readonly #options: BatcherOptions
  #queue: Waiting<In, Out>[] = []
  #underWay = 0
  #woken = false
  #endedAt = Number.NEGATIVE_INFINITY
  #newest: Promise<Out> | null = null

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
    this.#newest = new Promise((resolve, reject) => {
      this.#queue.push({ item, resolve, reject })
      this.#flushSoon()
    })
    return this.#newest
  }

  /** Resolves when all that was added before has ended, in whichever way; null if there is nothing. */
  ended(): Promise<unknown> | null {
    if (this.#queue.length === 0 && this.#underWay === 0) return null
    return this.#newest!.catch(() => {})
  }

  #flushSoon(): void {
    if (this.#woken || this.#queue.length === 0 || this.#underWay >= this.#options.atOnce) return
    this.#woken = true
    const flush = () => {
      this.#woken = false
      this.#flush()
    }
    const waitMs = (this.#options.gatherMs ?? 0) - (performance.now() - this.#endedAt)
    // The calls of one moment go together.
    if (waitMs > 0) setTimeout(flush, waitMs)
    else setImmediate(flush)
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
    this.#endedAt = performance.now()
    this.#flushSoon()
  }
}

/**
 * Group commit by natural batching: calls that arrive while a batch is in flight go into the next one. A single call does not wait; under load
 * the batches grow.
 */

interface Waiting<In, Out> {
  readonly item: In
  resolve(result: Out): void
  reject(error: unknown): void
}

export interface BatcherOptions<In> {
  /** Batches in flight. One keeps the order of the calls. */
  readonly atOnce: number
  /** Total weight of a batch. */
  readonly most: number
  /** Shortest time between batches: a few milliseconds make them several times larger under load. */
  readonly gatherMs?: number
  /** Items of one group keep their order: they are in one batch in flight at a time. */
  readonly group?: (item: In) => string
}

export class Batcher<In, Out> {
  readonly #write: (items: readonly In[]) => Promise<Out[]>
  readonly #weight: (item: In) => number
  readonly #options: BatcherOptions<In>
  #queue: Waiting<In, Out>[] = []
  #underWay = 0
  #woken = false
  #endedAt = Number.NEGATIVE_INFINITY
  readonly #groups = new Set<string>()

  constructor(
    write: (items: readonly In[]) => Promise<Out[]>,
    options: BatcherOptions<In>,
    weight: (item: In) => number = () => 1,
  ) {
    this.#write = write
    this.#options = options
    this.#weight = weight
  }

  add(item: In): Promise<Out> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ item, resolve, reject })
      this.#flushSoon()
    })
  }

  #flushSoon(): void {
    if (this.#woken || this.#queue.length === 0 || this.#underWay >= this.#options.atOnce) return
    this.#woken = true
    const flush = () => {
      this.#woken = false
      this.#flush()
    }
    const waitMs = (this.#options.gatherMs ?? 0) - (performance.now() - this.#endedAt)
    // At the end of the tick, with its other calls.
    if (waitMs > 0) setTimeout(flush, waitMs)
    else setImmediate(flush)
  }

  #flush(): void {
    while (this.#queue.length > 0 && this.#underWay < this.#options.atOnce) {
      const batch = this.#take()
      if (batch.length === 0) return
      void this.#run(batch)
    }
  }

  #take(): Waiting<In, Out>[] {
    const { most, group } = this.#options
    const batch: Waiting<In, Out>[] = []
    const left: Waiting<In, Out>[] = []
    let weight = 0
    for (const waiting of this.#queue) {
      const isFull = batch.length > 0 && weight >= most
      if (isFull || (group !== undefined && this.#groups.has(group(waiting.item)))) {
        left.push(waiting)
        continue
      }
      weight += this.#weight(waiting.item)
      batch.push(waiting)
    }
    this.#queue = left
    if (group !== undefined) for (const { item } of batch) this.#groups.add(group(item))
    return batch
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
    const { group } = this.#options
    if (group !== undefined) for (const { item } of batch) this.#groups.delete(group(item))
    this.#endedAt = performance.now()
    this.#flushSoon()
  }
}

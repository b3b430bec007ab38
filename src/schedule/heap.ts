/** A binary heap: the entry with the smallest time first. */

export interface Timed {
  readonly at: number
}

export class Heap<T extends Timed> {
  readonly #entries: T[] = []

  get size(): number {
    return this.#entries.length
  }

  peek(): T | undefined {
    return this.#entries[0]
  }

  /** Drops all other entries. */
  retain(keep: (entry: T) => boolean): void {
    for (const entry of this.#entries.splice(0).filter(keep)) this.push(entry)
  }

  push(entry: T): void {
    const entries = this.#entries
    let i = entries.length
    entries.push(entry)
    while (i > 0) {
      const parent = (i - 1) >> 1
      if (entries[parent]!.at <= entry.at) break
      entries[i] = entries[parent]!
      i = parent
    }
    entries[i] = entry
  }

  pop(): T | undefined {
    const entries = this.#entries
    const first = entries[0]
    const last = entries.pop()
    if (last === undefined || entries.length === 0) return first
    let i = 0
    for (;;) {
      let child = 2 * i + 1
      if (child >= entries.length) break
      if (child + 1 < entries.length && entries[child + 1]!.at < entries[child]!.at) child++
      if (entries[child]!.at >= last.at) break
      entries[i] = entries[child]!
      i = child
    }
    entries[i] = last
    return first
  }
}

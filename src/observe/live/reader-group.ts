/** Readers with the same filter. The bytes of their events are made once, and shared by all readers at the same place. */
import type { BufferedEvent } from "./event-buffer.ts"
import type { LiveFilter } from "./live-filter.ts"
import type { LiveReader } from "./live-reader.ts"

/** A reader that stops reading keeps at most this much in memory, and the same chunk is often shared. */
const CHUNK_BYTES = 65_536

export interface Chunk {
  readonly bytes: Buffer
  /** The number of its last event. */
  readonly upTo: number
}

export class ReaderGroup {
  readonly filter: LiveFilter
  readonly readers = new Set<LiveReader>()
  /** Matching events that some reader has not been sent yet. */
  #waiting: BufferedEvent[] = []
  #latest: (Chunk & { readonly after: number }) | null = null

  constructor(filter: LiveFilter) {
    this.filter = filter
  }

  add(event: BufferedEvent): void {
    this.#waiting.push(this.#seen(event))
  }

  /** In place of those that wait. */
  replay(events: BufferedEvent[]): void {
    this.#waiting = events.map((event) => this.#seen(event))
    this.#latest = null
  }

  /** The next events after this number; null when there are none. */
  chunkAfter(number: number): Chunk | null {
    if (this.#latest?.after === number) return this.#latest
    const from = this.#indexAfter(number)
    const first = this.#waiting[from]
    if (first === undefined) return null
    let text = first.text
    let upTo = first.number
    for (let i = from + 1; i < this.#waiting.length && text.length < CHUNK_BYTES; i++) {
      text += this.#waiting[i]!.text
      upTo = this.#waiting[i]!.number
    }
    this.#latest = { bytes: Buffer.from(text), upTo, after: number }
    return this.#latest
  }

  /** Forgets events that every reader was sent, and those that the buffer has dropped. Returns the readers that needed one of the latter. */
  trim(oldest: number): LiveReader[] {
    const reached = Math.min(...[...this.readers].map((reader) => reader.cursor))
    const lastLost = this.#waiting[this.#indexAfter(oldest - 1) - 1]
    const overtaken =
      lastLost === undefined ? [] : [...this.readers].filter(({ cursor }) => cursor < lastLost.number)
    const sent = this.#indexAfter(Math.max(reached, oldest - 1))
    if (sent > 0) this.#waiting.splice(0, sent)
    this.#latest = null
    return overtaken
  }

  #seen(event: BufferedEvent): BufferedEvent {
    return this.filter.seesCounts ? event : event.withoutCount
  }

  /** By bisection: a reader that lags behind has thousands of events before it. */
  #indexAfter(number: number): number {
    let [low, high] = [0, this.#waiting.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#waiting[middle]!.number <= number) low = middle + 1
      else high = middle
    }
    return low
  }
}

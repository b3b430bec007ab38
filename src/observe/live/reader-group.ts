/** Readers with the same filter. The bytes of their events are made once, and shared by all readers at the same place. */
import type { BufferedEvent, EventBuffer } from "./event-buffer.ts"
import { type LiveFilter, matches } from "./live-filter.ts"
import type { LiveGroup } from "./live-group.ts"
import type { LiveReader } from "./live-reader.ts"

/** A reader that stops reading keeps at most this much in memory, and the same chunk is often shared. */
const CHUNK_BYTES = 65_536

interface Chunk {
  readonly bytes: Buffer
  /** The number of its last event. */
  readonly upTo: number
}

export class ReaderGroup implements LiveGroup {
  readonly filter: LiveFilter
  readonly readers = new Set<LiveReader>()
  readonly #buffer: EventBuffer
  /** Matching events that some reader has not been sent yet. */
  #waiting: BufferedEvent[] = []
  #latest: (Chunk & { readonly after: number }) | null = null

  constructor(filter: LiveFilter, buffer: EventBuffer) {
    this.filter = filter
    this.#buffer = buffer
  }

  join(reader: LiveReader): void {
    if (reader.cursor < this.#buffer.last) this.#replay(reader.cursor)
    this.readers.add(reader)
    this.#pump(reader)
  }

  leave(reader: LiveReader): void {
    this.readers.delete(reader)
  }

  add(event: BufferedEvent): void {
    this.#waiting.push(this.#seen(event))
  }

  drained(reader: LiveReader): void {
    this.#pump(reader)
  }

  flush(): LiveReader[] {
    for (const reader of this.readers) this.#pump(reader)
    return this.#trim(this.#buffer.first)
  }

  /** Events of the buffer take the place of those that wait. */
  #replay(cursor: number): void {
    const from = Math.min(cursor, ...[...this.readers].map((reader) => reader.cursor))
    const events = this.#buffer.after(from).filter(({ event }) => matches(this.filter, event))
    this.#waiting = events.map((event) => this.#seen(event))
    this.#latest = null
  }

  /** Sends until the connection is full. */
  #pump(reader: LiveReader): void {
    while (!reader.isBlocked) {
      const chunk = this.#chunkAfter(reader.cursor)
      reader.cursor = chunk?.upTo ?? this.#buffer.last
      if (chunk === null) return
      reader.write(chunk.bytes)
    }
  }

  /** The next events after this number; null when there are none. */
  #chunkAfter(number: number): Chunk | null {
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
  #trim(oldest: number): LiveReader[] {
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

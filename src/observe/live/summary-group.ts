/**
 * Readers that get one summary for each period in which something happened. When nothing happened in a period, one summary of zeros says
 * so, and then nothing is sent. No summary waits for a reader: one that comes back, or whose connection was full, gets a summary of all that
 * it missed, made from the buffer.
 */
import type { Clock, Timer } from "../../core/clock.ts"
import type { BufferedEvent, EventBuffer } from "./event-buffer.ts"
import { eventText } from "./event-text.ts"
import { type LiveFilter, matches } from "./live-filter.ts"
import type { LiveGroup } from "./live-group.ts"
import type { LiveReader } from "./live-reader.ts"
import { type SummaryEvent, Tally } from "./summary.ts"

export class SummaryGroup implements LiveGroup {
  readonly filter: LiveFilter
  readonly readers = new Set<LiveReader>()
  readonly #buffer: EventBuffer
  readonly #clock: Clock
  readonly #periodMs: number
  /** The readers that missed the end of a period, and when that period began. */
  readonly #behind = new Map<LiveReader, number>()
  #tally: Tally
  /** Ends the period; null while nothing happens. */
  #timer: Timer | null = null
  #periodFrom = 0
  /** Up to this number, the events are in earlier summaries. */
  #told: number

  constructor(filter: LiveFilter, periodMs: number, buffer: EventBuffer, clock: Clock) {
    this.filter = filter
    this.#periodMs = periodMs
    this.#buffer = buffer
    this.#clock = clock
    this.#tally = new Tally(filter)
    this.#told = buffer.last
  }

  join(reader: LiveReader): void {
    this.#settle()
    this.readers.add(reader)
    if (reader.cursor < this.#told) this.#catchUp(reader, null)
  }

  leave(reader: LiveReader): void {
    this.readers.delete(reader)
    this.#behind.delete(reader)
    if (this.readers.size > 0) return
    this.#timer?.cancel()
    this.#timer = null
  }

  add(event: BufferedEvent): void {
    this.#tally.add(event)
    if (this.#timer === null) this.#begin(this.#clock.now())
  }

  drained(reader: LiveReader): void {
    const from = this.#behind.get(reader)
    if (from !== undefined) this.#catchUp(reader, from)
  }

  flush(): LiveReader[] {
    this.#settle()
    const { first } = this.#buffer
    return [...this.#behind.keys()].filter(({ cursor }) => cursor < first - 1)
  }

  /** While nothing happens, the place to resume from moves on with the events of others. */
  #settle(): void {
    if (this.#timer === null) this.#tell(this.#buffer.last, () => {})
  }

  #begin(from: number): void {
    this.#periodFrom = from
    this.#timer = this.#clock.setTimer(this.#periodMs, () => this.#end())
  }

  #end(): void {
    const [from, to] = [this.#periodFrom, this.#clock.now()]
    const tally = this.#tally
    this.#tally = new Tally(this.filter)
    const bytes = Buffer.from(this.#textOf(tally.toSummary(from, to), this.#buffer.last))
    this.#tell(this.#buffer.last, (reader) => reader.write(bytes), from)
    if (tally.isEmpty) this.#timer = null
    else this.#begin(to)
  }

  /** Readers that take nothing now stay where they are. */
  #tell(upTo: number, write: (reader: LiveReader) => void, from?: number): void {
    for (const reader of this.readers) {
      if (reader.isBlocked && from !== undefined && !this.#behind.has(reader)) this.#behind.set(reader, from)
      if (reader.isBlocked || this.#behind.has(reader)) continue
      write(reader)
      reader.cursor = upTo
    }
    this.#told = upTo
  }

  /** `from`: null if it is not known when the events began that the reader missed. */
  #catchUp(reader: LiveReader, from: number | null): void {
    const missed = this.#buffer
      .after(reader.cursor)
      .filter(({ number, event }) => number <= this.#told && matches(this.filter, event))
    const tally = new Tally(this.filter)
    for (const event of missed) tally.add(event)
    const to = this.#timer === null ? this.#clock.now() : this.#periodFrom
    this.#behind.delete(reader)
    reader.cursor = this.#told
    if (from === null && tally.isEmpty) return
    const first = from ?? missed[0]!.event.at
    reader.write(this.#textOf(tally.toSummary(Math.min(first, to), to), this.#told))
  }

  #textOf(summary: SummaryEvent, number: number): string {
    return eventText(this.#buffer.idOf(number), summary)
  }
}

/**
 * Live events for many readers. While somebody reads, and a minute longer, the public events of this process and those that other
 * processes pass on are numbered and kept in a bounded buffer. A reader that comes back gets what it has missed, or a gap.
 * A reader that does not keep up is dropped when the buffer overtakes it: nobody waits for it.
 */
import { randomBytes } from "node:crypto"
import type { Clock, Timer } from "../../core/clock.ts"
import { PosthornError } from "../../core/errors.ts"
import type { EventBus } from "../event-bus.ts"
import { parseEventId } from "../event-id.ts"
import type { Instruments } from "../instruments.ts"
import type { AcceptedCount } from "../process-channel.ts"
import type { GapEvent } from "../public-events.ts"
import { type BufferLimits, EventBuffer, type LiveEvent } from "./event-buffer.ts"
import { eventText, heartbeatText, openingText } from "./event-text.ts"
import { filterKey, type LiveFilter, matches } from "./live-filter.ts"
import type { LiveGroup } from "./live-group.ts"
import { LiveReader, type ReaderConnection } from "./live-reader.ts"
import { ReaderGroup } from "./reader-group.ts"
import { requireRoom } from "./reader-limits.ts"
import { SummaryGroup } from "./summary-group.ts"

export const HEARTBEAT_MS = 15_000
/** How long events are recorded after the last reader has gone: it may only have lost its connection. */
const LINGER_MS = 60_000
/** At the highest rate, half a second and more; usually many minutes. */
export const BUFFER_LIMITS: BufferLimits = { events: 20_000, bytes: 16_777_216 }
/** A write to each reader takes some 10 µs: with many readers, events of this time for each of them go together. */
const GATHER_MS_FOR_A_READER = 0.1

export interface LiveEventsParts {
  readonly bus: EventBus
  readonly clock: Clock
  readonly instruments: Instruments
  readonly limits?: BufferLimits
}

export class LiveEvents {
  readonly #parts: LiveEventsParts
  readonly #process = randomBytes(6).toString("hex")
  readonly #groups = new Map<string, LiveGroup>()
  /** The same groups by the applications of their filter, else by tenant: an event concerns few of them. */
  readonly #bySubject = new Map<string, Set<LiveGroup>>()
  readonly #readers = new Set<LiveReader>()
  #buffer: EventBuffer
  #epoch = 0
  #stopRecording: (() => void) | null = null
  #lingering: Timer | null = null
  #heartbeat: Timer | null = null
  #flushing: NodeJS.Immediate | NodeJS.Timeout | null = null
  #flushedAt = Number.NEGATIVE_INFINITY
  #hasSummaries = false
  #isClosed = false

  constructor(parts: LiveEventsParts) {
    this.#parts = parts
    this.#buffer = this.#newBuffer()
  }

  /** `lastEventId`: where the reader left off; null: it starts with the next event. Throws `limit_reached` and `closed`. */
  open(filter: LiveFilter, lastEventId: string | null, connection: ReaderConnection): LiveReader {
    if (this.#isClosed) throw new PosthornError("closed", "Posthorn is closing")
    if (lastEventId !== null) this.#catchUp(filter)
    requireRoom(filter, [...this.#groups.values()], (appId) => this.#bySubject.get(appId) ?? [])
    this.#record()
    const { cursor, gap } = this.#resume(lastEventId, filter)
    const group = this.#groupFor(filter)
    const reader = new LiveReader(connection, group, cursor)
    this.#readers.add(reader)
    this.#parts.instruments.eventStreamReaders(this.#readers.size)
    reader.write(openingText(this.#buffer.idOf(cursor)))
    if (gap !== null) reader.write(eventText(this.#buffer.idOf(cursor), gap))
    group.join(reader)
    return reader
  }

  /** Whether accepted messages are counted: since somebody reads summaries, until nothing is recorded any more. */
  get countsAccepted(): boolean {
    return this.#hasSummaries
  }

  accepted(counts: readonly AcceptedCount[]): void {
    if (this.#hasSummaries) this.#add({ type: "accepted", counts, at: this.#parts.clock.now() })
  }

  /** The connection takes bytes again. */
  drained(reader: LiveReader): void {
    if (!this.#readers.has(reader)) return
    reader.drained()
    reader.group.drained(reader)
  }

  /** The reader has gone. */
  leave(reader: LiveReader): void {
    if (!this.#readers.delete(reader)) return
    const { group } = reader
    group.leave(reader)
    if (group.readers.size === 0) this.#forget(group)
    this.#parts.instruments.eventStreamReaders(this.#readers.size)
    if (this.#readers.size > 0 || this.#isClosed) return
    this.#lingering = this.#parts.clock.setTimer(LINGER_MS, () => this.#stop())
  }

  /** Ends all streams. */
  close(): void {
    this.#isClosed = true
    this.#flush()
    for (const reader of [...this.#readers]) this.#end(reader)
    this.#stop()
  }

  /** Sends the group's waiting events before a replay replaces them: the buffer may have lost some of them. */
  #catchUp(filter: LiveFilter): void {
    const group = this.#groups.get(filterKey(filter))
    if (group !== undefined) this.#flushGroup(group)
  }

  /** A reader that does not read would never get the end of its stream. */
  #end(reader: LiveReader, how: "stop" | "drop" = reader.isBlocked ? "drop" : "stop"): void {
    this.leave(reader)
    reader.connection.end(how)
  }

  #drop(reader: LiveReader): void {
    this.#parts.instruments.eventStreamDropped()
    this.#end(reader, "drop")
  }

  #newBuffer(): EventBuffer {
    return new EventBuffer(this.#process, ++this.#epoch, this.#parts.limits ?? BUFFER_LIMITS)
  }

  #record(): void {
    this.#lingering?.cancel()
    this.#lingering = null
    if (this.#stopRecording !== null) return
    this.#stopRecording = this.#parts.bus.onEvery((event) => this.#add(event))
    this.#scheduleHeartbeat()
  }

  #stop(): void {
    this.#stopRecording?.()
    this.#stopRecording = null
    this.#hasSummaries = false
    for (const timer of [this.#lingering, this.#heartbeat]) timer?.cancel()
    this.#lingering = this.#heartbeat = null
    // Events from now on are in no buffer: ids of this epoch cannot be resumed.
    this.#buffer = this.#newBuffer()
  }

  #resume(
    lastEventId: string | null,
    { seesCounts }: LiveFilter,
  ): { readonly cursor: number; readonly gap: GapEvent | null } {
    const { last, first } = this.#buffer
    const id = lastEventId === null ? null : parseEventId(lastEventId)
    if (id === null) return { cursor: last, gap: null }
    const lost = (reason: GapEvent["reason"], cursor: number, missing: number | null) => {
      const count = seesCounts ? missing : null
      const to = this.#buffer.idOf(cursor)
      const at = this.#parts.clock.now()
      return { cursor, gap: { type: "gap", reason, from: lastEventId!, to, count, at } as const }
    }
    if (id.process !== this.#process) return lost("other_process", last, null)
    if (id.epoch !== this.#epoch || id.number > last) return lost("idle", last, null)
    if (id.number < first - 1) return lost("overflow", first - 1, first - 1 - id.number)
    return { cursor: id.number, gap: null }
  }

  #groupFor(filter: LiveFilter): LiveGroup {
    const key = filterKey(filter)
    const group = this.#groups.get(key) ?? this.#newGroup(filter)
    this.#groups.set(key, group)
    for (const subject of subjectsOf(filter)) {
      const same = this.#bySubject.get(subject) ?? new Set()
      this.#bySubject.set(subject, same.add(group))
    }
    return group
  }

  #newGroup(filter: LiveFilter): LiveGroup {
    if (filter.summaryMs === undefined) return new ReaderGroup(filter, this.#buffer)
    this.#hasSummaries = true
    return new SummaryGroup(filter, filter.summaryMs, this.#buffer, this.#parts.clock)
  }

  #forget(group: LiveGroup): void {
    this.#groups.delete(filterKey(group.filter))
    for (const subject of subjectsOf(group.filter)) {
      const same = this.#bySubject.get(subject)
      same?.delete(group)
      if (same?.size === 0) this.#bySubject.delete(subject)
    }
  }

  #add(event: LiveEvent): void {
    const added = this.#buffer.add(event)
    for (const groups of this.#concernedBy(event))
      for (const group of groups) if (matches(group.filter, event)) group.add(added)
    if (this.#readers.size > 0) this.#flushSoon()
  }

  #concernedBy(event: LiveEvent): Iterable<LiveGroup>[] {
    if (!("org_id" in event)) return [this.#groups.values()]
    return [this.#bySubject.get(event.org_id) ?? [], this.#bySubject.get(event.app_id) ?? []]
  }

  /** The first event at the end of the tick; then, with many readers, in rounds. */
  #flushSoon(): void {
    if (this.#flushing !== null) return
    const waitMs = this.#flushedAt + this.#readers.size * GATHER_MS_FOR_A_READER - performance.now()
    const run = () => this.#flush()
    this.#flushing = waitMs <= 1 ? setImmediate(run) : setTimeout(run, waitMs)
  }

  #flush(): void {
    this.#flushing = null
    this.#flushedAt = performance.now()
    for (const group of [...this.#groups.values()]) this.#flushGroup(group)
  }

  #flushGroup(group: LiveGroup): void {
    for (const reader of group.flush()) this.#drop(reader)
  }

  #scheduleHeartbeat(): void {
    this.#heartbeat = this.#parts.clock.setTimer(HEARTBEAT_MS, () => {
      this.#flush()
      for (const reader of [...this.#readers]) void this.#beat(reader)
      this.#scheduleHeartbeat()
    })
  }

  async #beat(reader: LiveReader): Promise<void> {
    if (reader.missedHeartbeat()) return this.#drop(reader)
    const mayGoOn = await isAllowed(reader.connection)
    if (!this.#readers.has(reader)) return
    if (!mayGoOn) return this.#end(reader)
    if (!reader.isBlocked) reader.write(heartbeatText(this.#buffer.idOf(reader.cursor)))
  }
}

async function isAllowed(connection: ReaderConnection): Promise<boolean> {
  try {
    return await connection.mayGoOn()
  } catch {
    return false
  }
}

function subjectsOf({ orgId, appIds }: LiveFilter): readonly string[] {
  return appIds ?? [orgId]
}

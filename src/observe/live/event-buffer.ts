/** The latest events of one epoch, numbered. What a reader that comes back has missed is read from it. */
import { formatEventId } from "../event-id.ts"
import type { PublicEvent } from "../public-events.ts"
import { eventText } from "./event-text.ts"
import type { AcceptedBatch } from "./summary.ts"

export type LiveEvent = PublicEvent | AcceptedBatch

export interface BufferLimits {
  readonly events: number
  readonly bytes: number
}

/** Memory of an event without its texts of free length. */
const EVENT_BYTES = 600
/** Memory of the count of an application. */
const COUNT_BYTES = 200

export class BufferedEvent {
  readonly number: number
  readonly event: LiveEvent
  readonly bytes: number
  readonly #id: string
  #text: string | null = null

  constructor(id: string, number: number, event: LiveEvent) {
    this.#id = id
    this.number = number
    this.event = event
    this.bytes = EVENT_BYTES + variableBytes(event)
  }

  /** The same, if it is a gap, without the number of events that are missing. */
  get withoutCount(): BufferedEvent {
    const { event } = this
    return event.type === "gap" ? new BufferedEvent(this.#id, this.number, { ...event, count: null }) : this
  }

  /** Made once for all readers, and only if there is one who gets the event. */
  get text(): string {
    this.#text ??= eventText(this.#id, this.event)
    return this.#text
  }
}

export class EventBuffer {
  readonly #process: string
  readonly #epoch: number
  readonly #limits: BufferLimits
  #events: BufferedEvent[] = []
  /** Events at the start of the list that were dropped. */
  #dropped = 0
  #bytes = 0
  #last = 0

  constructor(process: string, epoch: number, limits: BufferLimits) {
    this.#process = process
    this.#epoch = epoch
    this.#limits = limits
  }

  /** The number of the latest event; 0 if there was none. */
  get last(): number {
    return this.#last
  }

  /** The number of the oldest event that is still here; one more than `last` if there is none. */
  get first(): number {
    return this.#events[this.#dropped]?.number ?? this.#last + 1
  }

  idOf(number: number): string {
    return formatEventId({ process: this.#process, epoch: this.#epoch, number })
  }

  add(event: LiveEvent): BufferedEvent {
    const number = ++this.#last
    const added = new BufferedEvent(this.idOf(number), number, event)
    this.#events.push(added)
    this.#bytes += added.bytes
    this.#dropOldest()
    return added
  }

  /** Those with a higher number. */
  after(number: number): BufferedEvent[] {
    return this.#events.slice(this.#dropped + Math.max(0, number + 1 - this.first))
  }

  #dropOldest(): void {
    const { events, bytes } = this.#limits
    while (this.#events.length - this.#dropped > events || this.#bytes > bytes)
      this.#bytes -= this.#events[this.#dropped++]!.bytes
    // Now and then, since it moves all of the others.
    if (this.#dropped <= this.#events.length / 2) return
    this.#events = this.#events.slice(this.#dropped)
    this.#dropped = 0
  }
}

function variableBytes(event: LiveEvent): number {
  if (event.type === "accepted") return COUNT_BYTES * event.counts.length
  const error = "last_error" in event ? event.last_error : "error" in event ? event.error : null
  return 2 * (error?.length ?? 0)
}

/**
 * Public events across processes: a delivery's events reach the listeners of all processes that share its store. A process passes its
 * events on only while another process listens: at full load they are many. It numbers them, so that the others see when one is lost.
 */
import { randomBytes } from "node:crypto"
import type { EventBus } from "./event-bus.ts"
import { formatEventId, parseEventId } from "./event-id.ts"
import type { EventSubscriber, InternalEvent } from "./event-stream.ts"
import type { AcceptedCount, Note, ProcessChannel, RelayedEvent, RelayMark } from "./process-channel.ts"
import { type GapEvent, type PublicEvent, toPublicEvents } from "./public-events.ts"
import { RelayPositions } from "./relay-positions.ts"

/** How often a process says that it listens, and how long the others believe it. */
const SAY_EVERY_MS = 7000
const BELIEVED_MS = 20_000
/** A process that has just started asks. Until the answers are there, it assumes that others listen. */
const BELIEVED_AT_FIRST_MS = 2000
/** Many processes may listen: the answers to all of them are one note. */
const POSITION_EVERY_MS = 1000
/** Applications in one note, whose size is limited. */
const MOST_COUNTS = 50

export class EventRelay implements EventSubscriber {
  readonly #bus: EventBus
  readonly #channel: ProcessChannel
  readonly #now: () => number
  readonly #process = randomBytes(6).toString("hex")
  /** Goes up whenever this process begins to pass events on: events before were not numbered. */
  #epoch = 0
  #number = 0
  #isPassingOn = false
  #acceptedNotes = 0
  #heardAt = performance.now()
  #positionedAt = Number.NEGATIVE_INFINITY
  #saying: NodeJS.Timeout | null = null
  readonly #others = new RelayPositions()

  /** `now` is the time of gap events. */
  constructor(bus: EventBus, channel: ProcessChannel, now: () => number) {
    this.#bus = bus
    this.#channel = channel
    this.#now = now
    bus.whenListening(() => this.#say())
  }

  handle(event: InternalEvent): void {
    if (!this.hasOtherListeners) this.#isPassingOn = false
    else this.#passOn(toPublicEvents(event))
  }

  /** Whether another process listens, as far as is known. */
  get hasOtherListeners(): boolean {
    return performance.now() - this.#heardAt < BELIEVED_MS
  }

  /** Called when the channel is open. */
  start(): void {
    this.#heardAt = performance.now() - BELIEVED_MS + BELIEVED_AT_FIRST_MS
    this.#channel.post({ kind: "asking" })
    this.#sayPosition()
  }

  hear(note: Extract<Note, { kind: "asking" | "listening" | "events" }>): void {
    switch (note.kind) {
      case "asking":
        if (this.#bus.hasListeners) this.#channel.post({ kind: "listening" })
        return
      case "listening":
        this.#heardAt = performance.now()
        if (performance.now() - this.#positionedAt >= POSITION_EVERY_MS) this.#sayPosition()
        return
      case "events":
        for (const event of note.events) this.#receive(event)
    }
  }

  /** These notes are not numbered as events are: a lost one is not noticed. */
  passOnAccepted(counts: readonly AcceptedCount[]): void {
    if (!this.hasOtherListeners) return
    for (let from = 0; from < counts.length; from += MOST_COUNTS)
      this.#channel.post({
        kind: "accepted",
        number: ++this.#acceptedNotes,
        counts: counts.slice(from, from + MOST_COUNTS),
      })
  }

  /** Before the channel closes. */
  close(): void {
    if (this.#saying !== null) clearTimeout(this.#saying)
    if (this.#isPassingOn) this.#post([this.#mark("relay.leaving")])
  }

  #passOn(events: readonly PublicEvent[]): void {
    if (events.length === 0) return
    this.#begin()
    this.#post(events.map((event) => ({ ...event, relay_id: this.#id(++this.#number) })))
  }

  #begin(): void {
    if (this.#isPassingOn) return
    this.#isPassingOn = true
    this.#epoch++
    this.#number = 0
  }

  /** Other processes learn from it that they have missed the latest events, or from where on they may miss some. */
  #sayPosition(): void {
    this.#begin()
    this.#positionedAt = performance.now()
    this.#post([this.#mark("relay.position")])
  }

  #mark(type: RelayMark["type"]): RelayMark {
    return { type, relay_id: this.#id(this.#number) }
  }

  #id(number: number): string {
    return formatEventId({ process: this.#process, epoch: this.#epoch, number })
  }

  #post(events: readonly RelayedEvent[]): void {
    this.#channel.post({ kind: "events", events })
  }

  /** Processes of earlier versions do not number their events. */
  #receive({ relay_id: text, ...event }: RelayedEvent): void {
    const id = text === undefined ? null : parseEventId(text)
    const now = this.#now()
    if (event.type === "relay.position") this.#report(id && this.#others.position(id, now))
    else if (event.type === "relay.leaving") this.#report(id && this.#others.leaving(id, now))
    else {
      this.#report(id && this.#others.event(id, now))
      this.#bus.publish(event as PublicEvent)
    }
  }

  #report(gap: GapEvent | null): void {
    if (gap !== null) this.#bus.publish(gap)
  }

  /** Says that this process listens, again and again while it does. */
  #say(): void {
    if (this.#saying !== null) return
    this.#channel.post({ kind: "listening" })
    this.#saying = setTimeout(() => {
      this.#saying = null
      if (!this.#bus.hasListeners) return this.#others.clear()
      for (const gap of this.#others.forgetSilent(this.#now())) this.#report(gap)
      this.#say()
    }, SAY_EVERY_MS).unref()
  }
}

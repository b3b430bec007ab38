/**
 * Public events across processes: a delivery's events reach the listeners of all processes that share its store. A process passes its
 * events on only while another process listens: at full load they are many.
 */
import type { EventBus } from "./event-bus.ts"
import type { EventSubscriber, InternalEvent } from "./event-stream.ts"
import type { Note, ProcessChannel } from "./process-channel.ts"
import { toPublicEvents } from "./public-events.ts"

/** How often a process says that it listens, and how long the others believe it. */
const SAY_EVERY_MS = 7000
const BELIEVED_MS = 20_000
/** A process that has just started asks. Until the answers are there, it assumes that others listen. */
const BELIEVED_AT_FIRST_MS = 2000

export class EventRelay implements EventSubscriber {
  readonly #bus: EventBus
  readonly #channel: ProcessChannel
  #heardAt = performance.now()
  #saying: NodeJS.Timeout | null = null

  constructor(bus: EventBus, channel: ProcessChannel) {
    this.#bus = bus
    this.#channel = channel
    bus.onListening = () => this.#say()
  }

  handle(event: InternalEvent): void {
    if (performance.now() - this.#heardAt >= BELIEVED_MS) return
    const events = toPublicEvents(event)
    if (events.length > 0) this.#channel.post({ kind: "events", events })
  }

  /** Called when the channel is open. */
  start(): void {
    this.#heardAt = performance.now() - BELIEVED_MS + BELIEVED_AT_FIRST_MS
    this.#channel.post({ kind: "asking" })
  }

  hear(note: Extract<Note, { kind: "asking" | "listening" | "events" }>): void {
    switch (note.kind) {
      case "asking":
        if (this.#bus.hasListeners) this.#channel.post({ kind: "listening" })
        return
      case "listening":
        this.#heardAt = performance.now()
        return
      case "events":
        for (const event of note.events) this.#bus.publish(event)
    }
  }

  close(): void {
    if (this.#saying !== null) clearTimeout(this.#saying)
  }

  /** Says that this process listens, again and again while it does. */
  #say(): void {
    if (this.#saying !== null) return
    this.#channel.post({ kind: "listening" })
    this.#saying = setTimeout(() => {
      this.#saying = null
      if (this.#bus.hasListeners) this.#say()
    }, SAY_EVERY_MS).unref()
  }
}

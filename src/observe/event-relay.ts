/**
 * Events across processes: what happens to a delivery in one process reaches the listeners of all that share its store. They are only
 * passed on while somebody elsewhere listens: at full load they are many.
 */

import type { EventBus } from "./events.ts"
import type { Note, ProcessChannel } from "./process-channel.ts"

/** How often a process says that it listens, and how long the others believe it. */
const SAY_EVERY_MS = 7000
const BELIEVED_MS = 20_000
/** Who has just started asks, and believes until the answers have come that somebody listens. */
const BELIEVED_AT_FIRST_MS = 2000

export class EventRelay {
  readonly #bus: EventBus
  readonly #processChannel: ProcessChannel
  #heardAt = performance.now()
  #saying: NodeJS.Timeout | null = null

  constructor(bus: EventBus, processChannel: ProcessChannel) {
    this.#bus = bus
    this.#processChannel = processChannel
    bus.onPublished((event) => {
      if (performance.now() - this.#heardAt < BELIEVED_MS)
        processChannel.post({ kind: "events", events: [event] })
    })
    bus.onListening = () => this.#say()
  }

  /** From here on the others are heard. */
  start(): void {
    this.#heardAt = performance.now() - BELIEVED_MS + BELIEVED_AT_FIRST_MS
    this.#processChannel.post({ kind: "asking" })
  }

  hear(note: Extract<Note, { kind: "asking" | "listening" | "events" }>): void {
    switch (note.kind) {
      case "asking":
        if (this.#bus.hasListeners) this.#processChannel.post({ kind: "listening" })
        return
      case "listening":
        this.#heardAt = performance.now()
        return
      case "events":
        for (const event of note.events) this.#bus.tell(event)
    }
  }

  close(): void {
    if (this.#saying !== null) clearTimeout(this.#saying)
  }

  /** As long as somebody listens. */
  #say(): void {
    if (this.#saying !== null) return
    this.#processChannel.post({ kind: "listening" })
    this.#saying = setTimeout(() => {
      this.#saying = null
      if (this.#bus.hasListeners) this.#say()
    }, SAY_EVERY_MS).unref()
  }
}

/** How far the events of each other process were heard. A number that is missing is an event that was lost on the way. */
import { type EventId, formatEventId } from "./event-id.ts"
import type { GapEvent } from "./public-events.ts"

/** Longer than three rounds in which a process says how far it is. */
const SILENT_MS = 25_000

interface Heard {
  readonly last: EventId
  readonly atMs: number
}

export class RelayPositions {
  readonly #heard = new Map<string, Heard>()

  /** An event with this id arrived. Returns the events that were lost before it. */
  event(id: EventId, nowMs: number): GapEvent | null {
    return this.#reached(id, id.number - 1, nowMs)
  }

  /** A process says that this was its latest event. Returns its events that were lost. */
  position(id: EventId, nowMs: number): GapEvent | null {
    return this.#reached(id, id.number, nowMs)
  }

  /** A process has stopped, and this was its last event. */
  leaving(id: EventId, nowMs: number): GapEvent | null {
    const gap = this.#reached(id, id.number, nowMs)
    this.#heard.delete(id.process)
    return gap
  }

  /** Forgets the processes that have been silent for too long: their last events may be lost with them. */
  forgetSilent(nowMs: number): GapEvent[] {
    const silent = [...this.#heard.values()].filter(({ atMs }) => nowMs - atMs > SILENT_MS)
    for (const { last } of silent) this.#heard.delete(last.process)
    return silent.map(({ last }) => gap("process_lost", last, null, null, nowMs))
  }

  /** No reader is left: events that are lost from now on are not reported. */
  clear(): void {
    this.#heard.clear()
  }

  /** `before` is the number up to which all events should have been heard. */
  #reached(id: EventId, before: number, nowMs: number): GapEvent | null {
    const known = this.#heard.get(id.process)?.last
    const isNewer =
      known === undefined || (id.epoch === known.epoch ? id.number >= known.number : id.epoch > known.epoch)
    this.#heard.set(id.process, { last: isNewer ? id : known, atMs: nowMs })
    if (known === undefined || !isNewer) return null
    // The process began to count anew: for a while it did not know that this process listens.
    if (id.epoch !== known.epoch) return gap("relay", known, id, null, nowMs)
    return before > known.number ? gap("relay", known, id, before - known.number, nowMs) : null
  }
}

function gap(
  reason: GapEvent["reason"],
  from: EventId,
  to: EventId | null,
  count: number | null,
  at: number,
): GapEvent {
  return { type: "gap", reason, from: formatEventId(from), to: to && formatEventId(to), count, at }
}

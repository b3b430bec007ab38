/** Payloads of NOTIFY: packs the notes of one process into as few as possible, and reads them again. */

import { type Note, type RelayedEvent, toNote } from "../../observe/process-channel.ts"

/** PostgreSQL's limit is 8000. */
const MOST_BYTES = 7500
/** JSON around the notes. */
const OVERHEAD_BYTES = 150
/** For one statement: about 1600 events. */
const MOST_PAYLOADS = 100
const LONGEST_ERROR = 500
/** Notes that wait for the next statement. Beyond this number the oldest are dropped. */
const MOST_WAITING = 10_000

export class OutgoingNotes {
  readonly #from: string
  /** As JSON, in order. A set drops repeated notes. */
  readonly #notes = new Set<string>()
  readonly #events = new Set<string>()
  /** The number of dropped notes. */
  dropped = 0

  constructor(from: string) {
    this.#from = from
  }

  get isEmpty(): boolean {
    return this.#notes.size === 0 && this.#events.size === 0
  }

  add(note: Note): void {
    if (note.kind !== "events") this.#keep(this.#notes, note)
    else for (const event of note.events) this.#keep(this.#events, brief(event))
  }

  /** The payloads of one statement; an empty payload when there are no notes. */
  take(): string[] {
    const payloads: string[] = []
    while (payloads.length < MOST_PAYLOADS && this.#notes.size > 0)
      payloads.push(this.#seal(fill(this.#notes)))
    while (payloads.length < MOST_PAYLOADS && this.#events.size > 0)
      payloads.push(this.#seal(`{"kind":"events","events":[${fill(this.#events)}]}`))
    return payloads.length > 0 ? payloads : [this.#seal("")]
  }

  #keep(among: Set<string>, what: Note | RelayedEvent): void {
    const text = JSON.stringify(what)
    if (Buffer.byteLength(text) > MOST_BYTES - OVERHEAD_BYTES) return void this.dropped++
    among.add(text)
    if (among.size <= MOST_WAITING) return
    const [oldest] = among
    among.delete(oldest!)
    this.dropped++
  }

  #seal(notes: string): string {
    return `{"from":"${this.#from}","notes":[${notes}]}`
  }
}

/** Null: not written by Posthorn. Every user of the database may NOTIFY on any channel. */
export function readNotifyPayload(payload: string): { from: string; notes: Note[] } | null {
  try {
    const { from, notes } = JSON.parse(payload)
    if (typeof from !== "string" || !Array.isArray(notes)) return null
    return { from, notes: notes.map(toNote).filter((note) => note !== null) }
  } catch {
    return null
  }
}

/** Removes the first entries, as many as fit into a payload. */
function fill(among: Set<string>): string {
  const taken: string[] = []
  let bytes = OVERHEAD_BYTES
  for (const text of among) {
    bytes += Buffer.byteLength(text) + 1
    if (bytes > MOST_BYTES && taken.length > 0) break
    taken.push(text)
    among.delete(text)
  }
  return taken.join()
}

/** Cuts errors short: they may quote a long response. */
function brief(event: RelayedEvent): RelayedEvent {
  switch (event.type) {
    case "delivery.dead":
    case "endpoint.breaker.opened":
    case "endpoint.failing":
      return { ...event, last_error: event.last_error?.slice(0, LONGEST_ERROR) ?? null }
    case "delivery.attempt":
      return { ...event, error: event.error?.slice(0, LONGEST_ERROR) ?? null }
    case "delivery.delivered":
    case "endpoint.breaker.half_open":
    case "endpoint.breaker.closed":
    case "endpoint.recovered":
    case "endpoint.disabled":
    case "relay.position":
    case "relay.leaving":
    case "gap":
    case "engine.outage.began":
    case "engine.outage.ended":
    case "agent.connected":
      return event
    case "agent.disconnected":
      return { ...event, detail: event.detail?.slice(0, LONGEST_ERROR) ?? null }
    default:
      return event satisfies never
  }
}

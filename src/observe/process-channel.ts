/** Notes between the processes that share a store. Each is a hint: a lost note delays a delivery until the next poll. */
import { EVENT_NAMES, type PublicEvent, TOPIC } from "./public-events.ts"

export type Note =
  /** Lanes may be due. */
  | { readonly kind: "due" }
  /** An endpoint was changed: deliveries that were fetched for it are out of date. */
  | { readonly kind: "changed"; readonly endpointId: string; readonly appId: string }
  | { readonly kind: "recall"; readonly endpointId?: string; readonly appId?: string }
  | { readonly kind: "tasks" }
  /** The sender has a new connection of an agent: older ones in other processes end. */
  | { readonly kind: "agent"; readonly appId: string; readonly agent: string; readonly epoch: number }
  /** The sender has just started: processes that listen to events answer `listening`. */
  | { readonly kind: "asking" }
  /** The sender listens to events: the others pass theirs on for some seconds. */
  | { readonly kind: "listening" }
  | { readonly kind: "events"; readonly events: readonly RelayedEvent[] }
  /** The sender has accepted messages. Equal notes are sent once: `number` makes them different. */
  | { readonly kind: "accepted"; readonly number: number; readonly counts: readonly AcceptedCount[] }

/** Accepted messages of an application. */
export type AcceptedCount = readonly [orgId: string, appId: string, messages: number]

/** An event with its number in the process that it comes from, or a process that says which number was its latest. */
export type RelayedEvent = (PublicEvent & { readonly relay_id?: string }) | RelayMark

/** It travels among the events, so that it cannot overtake one. `leaving`: the process stops. */
export interface RelayMark {
  readonly type: "relay.position" | "relay.leaving"
  readonly relay_id: string
}

export interface ProcessChannel {
  /** Resolves when notes of other processes are heard. */
  start(read: (note: Note) => void): Promise<void>
  post(note: Note): void
  /** Sends the notes that wait, if that is possible within 1.5 seconds. */
  close(): Promise<void>
}

/** For a store that only one process uses. */
export const noProcessChannel: ProcessChannel = {
  async start() {},
  post() {},
  async close() {},
}

/**
 * Null: not a note. Other programs and other versions of Posthorn can write to the channel. Events that this version does not know are
 * left out; their numbers are missing then, which is a gap for the listeners.
 */
export function toNote(value: unknown): Note | null {
  const note = value as Partial<Record<string, unknown>> | null
  switch (note?.kind as Note["kind"] | undefined) {
    case "due":
    case "tasks":
    case "asking":
    case "listening":
      return value as Note
    case "changed":
      return isText(note!.endpointId) && isText(note!.appId) ? (value as Note) : null
    case "agent":
      return isText(note!.appId) && isText(note!.agent) && typeof note!.epoch === "number"
        ? (value as Note)
        : null
    case "recall":
      return isTextOrNone(note!.endpointId) && isTextOrNone(note!.appId) ? (value as Note) : null
    case "events": {
      const events = Array.isArray(note!.events) ? note!.events.filter(isRelayed) : []
      return events.length === 0 ? null : { kind: "events", events }
    }
    case "accepted":
      return Array.isArray(note!.counts) && note!.counts.every(isCount) ? (value as Note) : null
    default:
      return null
  }
}

/** A gap is never passed on: each process finds its own. */
const RELAYED_TYPES: ReadonlySet<unknown> = new Set(
  EVENT_NAMES.filter((name) => name !== TOPIC && name !== "gap"),
)
const MARKS: ReadonlySet<unknown> = new Set<RelayMark["type"]>(["relay.position", "relay.leaving"])

function isRelayed(value: unknown): value is RelayedEvent {
  const { type, relay_id: id, at, error, last_error: lastError } = (value ?? {}) as Record<string, unknown>
  if (MARKS.has(type)) return isText(id)
  const isWhole = typeof at === "number" && [error ?? undefined, lastError ?? undefined].every(isTextOrNone)
  return RELAYED_TYPES.has(type) && isWhole && isTextOrNone(id)
}

function isCount(value: unknown): boolean {
  const [orgId, appId, messages] = Array.isArray(value) ? value : []
  return isText(orgId) && isText(appId) && typeof messages === "number"
}

function isText(value: unknown): boolean {
  return typeof value === "string"
}

function isTextOrNone(value: unknown): boolean {
  return value === undefined || isText(value)
}

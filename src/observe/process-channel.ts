/** Notes between the processes that share a store. Each is a hint: a lost note delays a delivery until the next poll. */
import type { PublicEvent } from "./public-events.ts"

export type Note =
  /** Lanes may be due. */
  | { readonly kind: "due" }
  /** An endpoint was changed: deliveries that were fetched for it are out of date. */
  | { readonly kind: "changed"; readonly endpointId: string; readonly appId: string }
  | { readonly kind: "recall"; readonly endpointId?: string; readonly appId?: string }
  | { readonly kind: "tasks" }
  /** The sender has just started: processes that listen to events answer `listening`. */
  | { readonly kind: "asking" }
  /** The sender listens to events: the others pass theirs on for some seconds. */
  | { readonly kind: "listening" }
  | { readonly kind: "events"; readonly events: readonly RelayedEvent[] }

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
  /** Sends the notes that wait, if that is possible at once. */
  close(): Promise<void>
}

/** For a store that only one process uses. */
export const noProcessChannel: ProcessChannel = {
  async start() {},
  post() {},
  async close() {},
}

/** Null: not a note. Other programs and other versions of Posthorn can write to the channel. */
export function toNote(value: unknown): Note | null {
  const note = value as Partial<Record<string, unknown>> | null
  const isId = (id: unknown) => typeof id === "string"
  const isIdOrNone = (id: unknown) => id === undefined || isId(id)
  const isEvent = (event: unknown) => {
    const { type, relay_id: id } = (event ?? {}) as { type?: unknown; relay_id?: unknown }
    return typeof type === "string" && isIdOrNone(id)
  }
  const isNote = () => {
    switch (note?.kind as Note["kind"] | undefined) {
      case "due":
      case "tasks":
      case "asking":
      case "listening":
        return true
      case "changed":
        return isId(note!.endpointId) && isId(note!.appId)
      case "recall":
        return isIdOrNone(note!.endpointId) && isIdOrNone(note!.appId)
      case "events":
        return Array.isArray(note!.events) && note!.events.every(isEvent)
      default:
        return false
    }
  }
  return isNote() ? (value as Note) : null
}

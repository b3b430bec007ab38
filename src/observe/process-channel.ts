/**
 * What the processes that share a store tell each other. Everything here is a hint: one that is lost costs a poll's time, never a
 * delivery.
 */
import type { WebhookEvent } from "./public-events.ts"

export type Note =
  /** Lanes have something to do. */
  | { readonly kind: "due" }
  /** An endpoint was changed: what was fetched for it before is out of date. */
  | { readonly kind: "changed"; readonly endpointId: string; readonly appId: string }
  | { readonly kind: "recall"; readonly endpointId?: string; readonly appId?: string }
  | { readonly kind: "tasks" }
  /** Somebody has just started: who listens to events says so at once. */
  | { readonly kind: "asking" }
  /** Somebody listens to events: for some seconds they are passed on. */
  | { readonly kind: "listening" }
  | { readonly kind: "events"; readonly events: readonly WebhookEvent[] }

export interface ProcessChannel {
  /** From here on the other processes' notes are read. */
  start(read: (note: Note) => void): Promise<void>
  post(note: Note): void
  close(): Promise<void>
}

/** A process that shares its store with none, or is found by polling. */
export const noProcessChannel: ProcessChannel = {
  async start() {},
  post() {},
  async close() {},
}

/** Null for what is none: it came from outside, perhaps from another version of the program. */
export function toNote(value: unknown): Note | null {
  const note = value as Partial<Record<string, unknown>> | null
  const isId = (id: unknown) => typeof id === "string"
  const isIdOrNone = (id: unknown) => id === undefined || isId(id)
  const isEvent = (event: unknown) => typeof (event as { type?: unknown } | null)?.type === "string"
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

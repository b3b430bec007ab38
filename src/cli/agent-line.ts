/** A webhook that the agent handled, as one line for people or for programs. */
import type { AgentDisconnected, AgentHandled } from "../agent/options.ts"
import { sentenceText } from "../core/wording.ts"
import type { Piece } from "./output.ts"
import { spanText } from "./time-flags.ts"

/** Without the query, which may have the sender's secrets. */
export const targetOf = ({ method, path }: AgentHandled["event"]) => `${method} ${path === "" ? "/" : path}`

const NEXT = {
  success: "",
  permanent: "; the webhook is rejected",
  transient: "; the webhook is tried again",
} as const

/** `next`: when the next try is. `before`: the reason that was told last, which is not told again. */
export function disconnectedText({ reason }: AgentDisconnected, next: string, before?: string): string {
  const why = reason === before ? "Still not connected." : sentenceText(`Not connected: ${reason}`)
  return `${why} The next try is ${next}.`
}

export function inText({ retryInMs }: AgentDisconnected): string {
  return `in ${spanText(Math.ceil((retryInMs ?? 0) / 1000))}`
}

export function handledLine(handled: AgentHandled, at: Date): Piece[] {
  const { event, outcome, isRepeated } = handled
  const said = isRepeated ? "acknowledged before, and now again" : answered(handled)
  return [
    [at.toISOString(), null],
    [event.eventType, "title"],
    [targetOf(event), null],
    [said + NEXT[outcome.result], outcome.result === "success" ? "good" : "bad"],
    [`attempt ${event.attempt}`, null],
  ]
}

function answered({ outcome: { status, error }, durationMs }: AgentHandled): string {
  if (status !== null) return `HTTP ${status} in ${durationMs} ms`
  return error ?? `done in ${durationMs} ms`
}

export function handledRecord({ event, outcome, durationMs, isRepeated }: AgentHandled, at: Date): object {
  return {
    at: at.toISOString(),
    delivery_id: event.deliveryId,
    message_id: event.messageId,
    event_type: event.eventType,
    method: event.method,
    path: event.path,
    attempt: event.attempt,
    result: outcome.result,
    status: outcome.status,
    error: outcome.error,
    duration_ms: durationMs,
    repeated: isRepeated,
  }
}

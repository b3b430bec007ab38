/** The attributes and events of spans. docs/observability.md describes each; a test compares the two. */
import type { AttemptPhase } from "../tracing.ts"

/** Of `publish webhooks`. */
export const PUBLISH_ATTRIBUTES = [
  "messaging.system",
  "messaging.operation.name",
  "messaging.operation.type",
  "messaging.destination.name",
  "messaging.message.id",
  "messaging.message.body.size",
  "messaging.batch.message_count",
  "posthorn.message.matched",
  "posthorn.message.duplicates",
  "error.type",
] as const

/** Of attempts. */
export const ATTEMPT_ATTRIBUTES = [
  "http.request.method",
  "http.request.resend_count",
  "http.response.status_code",
  "server.address",
  "server.port",
  "url.full",
  "network.peer.address",
  "network.protocol.version",
  "error.type",
  "posthorn.application.id",
  "posthorn.endpoint.id",
  "posthorn.message.id",
  "posthorn.delivery.id",
  "posthorn.attempt.number",
  "posthorn.attempt.trigger",
  "posthorn.attempt.outcome",
  "posthorn.retry.delay_s",
] as const

type AttributesOf<Names extends readonly string[]> = { [name in Names[number]]?: string | number }
export type PublishAttributes = AttributesOf<typeof PUBLISH_ATTRIBUTES>
export type AttemptAttributes = AttributesOf<typeof ATTEMPT_ATTRIBUTES>

/** The events of an attempt's span, by phase. */
export const PHASE_EVENTS = {
  resolved: "dns_resolved",
  connected: "connected",
  secured: "tls_secured",
  first_byte: "first_byte",
} as const satisfies { readonly [phase in AttemptPhase]: string }

/** `not_counted`: our own network was down, see docs/protection.md. `fault`: an error of Posthorn's own. */
export const ATTEMPT_OUTCOMES = ["delivered", "retry", "dead", "interrupted", "not_counted", "fault"] as const
export type AttemptSpanOutcome = (typeof ATTEMPT_OUTCOMES)[number]

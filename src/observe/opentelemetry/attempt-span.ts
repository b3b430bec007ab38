/** The span of one attempt, by the conventions of OpenTelemetry for HTTP clients. */
import { type Attributes, type Span, SpanStatusCode } from "@opentelemetry/api"
import { agentNameOf } from "../../core/agent-url.ts"
import { isAttempt, isSuccess, type Outcome } from "../../core/outcome.ts"
import type { AttemptPhase, AttemptSpan, EndedAttempt, TracedAttempt } from "../tracing.ts"
import { type AttemptAttributes, type AttemptSpanOutcome, PHASE_EVENTS } from "./attributes.ts"
import { type RedactedUrl, redactUrl } from "./redact-url.ts"
import { safely } from "./safely.ts"

/** The conventions forbid a path in the name: it has too many values. */
const HTTP_NAME = "POST"
/** Of an event for an agent, and of a channel for notifications, whose messages may leave as mails. */
const OTHER_NAME = "send webhook"

/** Name and attributes that are known when the attempt starts: a sampler may use them. */
export function startOf(attempt: TracedAttempt): { readonly name: string; readonly attributes: Attributes } {
  const { delivery, endpoint, kind } = attempt
  const url = redactUrl(endpoint.url)
  const attributes: AttemptAttributes = {
    ...(url === null ? relayAttributes(endpoint.url) : httpAttributes(url, delivery.attemptCount)),
    "posthorn.application.id": endpoint.appId,
    "posthorn.endpoint.id": endpoint.id,
    "posthorn.message.id": delivery.messageId,
    "posthorn.delivery.id": delivery.id,
    "posthorn.attempt.number": delivery.attemptCount + 1,
    "posthorn.attempt.trigger": kind === "manual" || kind === "probe" ? kind : "schedule",
  }
  return { name: url === null ? OTHER_NAME : HTTP_NAME, attributes }
}

function httpAttributes({ full, host, port }: RedactedUrl, resends: number): AttemptAttributes {
  return {
    "http.request.method": "POST",
    ...(resends > 0 ? { "http.request.resend_count": resends } : {}),
    "server.address": host,
    "server.port": port,
    "url.full": full,
  }
}

/** The agent opened the connection, which has no address of its own. Empty for a channel. */
function relayAttributes(url: string): AttemptAttributes {
  const agent = agentNameOf(url)
  return agent === null ? {} : { "server.address": agent, "url.full": url }
}

export class RecordedAttempt implements AttemptSpan {
  readonly traceId: string
  readonly traceparent: string
  readonly #span: Span

  constructor(span: Span, traceparent: string) {
    this.#span = span
    this.traceId = span.spanContext().traceId
    this.traceparent = traceparent
  }

  mark(phase: AttemptPhase): void {
    safely(() => this.#span.addEvent(PHASE_EVENTS[phase]))
  }

  peer(address: string): void {
    const known: AttemptAttributes = { "network.protocol.version": "1.1" }
    if (address !== "") known["network.peer.address"] = address
    safely(() => this.#span.setAttributes(known))
  }

  ended(attempt: EndedAttempt): void {
    const { outcome, responseStatus, retryDelayMs } = attempt
    const attributes: AttemptAttributes = { "posthorn.attempt.outcome": outcomeOf(attempt) }
    if (responseStatus !== null) attributes["http.response.status_code"] = responseStatus
    if (retryDelayMs !== null) attributes["posthorn.retry.delay_s"] = retryDelayMs / 1000
    const error = errorTypeOf(outcome)
    if (error !== null) {
      attributes["error.type"] = error
      safely(() => this.#span.setStatus({ code: SpanStatusCode.ERROR }))
    }
    safely(() => this.#span.setAttributes(attributes))
    safely(() => this.#span.end())
  }
}

function outcomeOf({ outcome, change }: EndedAttempt): AttemptSpanOutcome {
  if (outcome.kind === "interrupted" || outcome.kind === "fault") return outcome.kind
  if (change === null) return "not_counted"
  if (change.status === "delivered" || change.status === "dead") return change.status
  return "retry"
}

/** A status as a text, or a cause of the closed list; null: no error. A request that a shutdown cut off is none. */
function errorTypeOf(outcome: Outcome): string | null {
  if (outcome.kind === "fault") return "fault"
  if (!isAttempt(outcome) || isSuccess(outcome)) return null
  switch (outcome.kind) {
    case "response":
      return `${outcome.status}`
    case "failure":
      return outcome.cause
    case "ack":
      return outcome.result
    default:
      return outcome satisfies never
  }
}

/** Events of an endpoint's protection, made from its state. */
import { disablesAt } from "../core/failing.ts"
import type { Policy } from "../core/policy.ts"
import type { Protection } from "../core/protection.ts"
import type { BreakerEvent, EndpointEvent, FailingEvent } from "./event-stream.ts"

type EndpointOfEvent = EndpointEvent["endpoint"]

export function breakerEvent(
  to: "opened" | "half_open" | "closed",
  endpoint: EndpointOfEvent,
  { until, since, failures }: Protection,
  at: number,
  error: string | null = null,
  isReport = false,
): BreakerEvent {
  const isOpen = to === "opened"
  return {
    type: `endpoint.breaker.${to}`,
    endpoint,
    until: isOpen && !isReport ? until : null,
    since: isOpen ? (isReport ? at : since) : null,
    failures,
    error,
    isReport,
    at,
  }
}

export function failingEvent(
  to: "failing" | "recovered",
  endpoint: EndpointOfEvent,
  protection: Protection,
  previous: Protection,
  { autoDisable }: Policy,
  at: number,
  error: string | null,
): FailingEvent {
  // A recovery tells of the failures that it ended.
  const failing = to === "recovered" ? previous : protection
  return {
    type: `endpoint.${to}`,
    endpoint,
    failures: failing.failures,
    since: failing.failingSince,
    disablesAt: to === "recovered" ? null : disablesAt(protection, autoDisable),
    error: to === "recovered" ? previous.lastError : error,
    at,
  }
}

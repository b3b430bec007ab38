/** Events of an endpoint's protection, made from its state. */
import { disablesAt } from "../core/failing.ts"
import type { Policy } from "../core/policy.ts"
import type { Protection } from "../core/protection.ts"
import type { BreakerEvent, EndpointEvent, FailingEvent } from "./event-stream.ts"

type EndpointOfEvent = EndpointEvent["endpoint"]

export function breakerEvent(
  to: "opened" | "half_open" | "closed",
  endpoint: EndpointOfEvent,
  { until, since, downs }: Protection,
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
    failures: downs,
    error,
    isReport,
    at,
  }
}

export function failingEvent(
  to: "failing" | "recovered",
  endpoint: EndpointOfEvent,
  protection: Protection,
  { autoDisable }: Policy,
  at: number,
  error: string | null,
): FailingEvent {
  const { failures, failingSince: since } = protection
  return {
    type: `endpoint.${to}`,
    endpoint,
    failures,
    since,
    disablesAt: disablesAt(protection, autoDisable),
    error,
    at,
  }
}

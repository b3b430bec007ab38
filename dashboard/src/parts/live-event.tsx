/** Events of the live stream in words. */
import type { ComponentChildren } from "preact"
import type { PublicEvent } from "../../../src/observe/public-events.ts"
import { duration, localTime, plural, words } from "../format.ts"
import { toAgent, toDelivery, toEndpoint } from "../links.ts"
import { Id, type Tone } from "../ui/basics.tsx"

export type LiveEvent = PublicEvent

const TONES: { readonly [T in LiveEvent["type"]]: Tone } = {
  "delivery.attempt": "warn",
  "delivery.delivered": "good",
  "delivery.dead": "bad",
  "endpoint.breaker.opened": "bad",
  "endpoint.breaker.half_open": "warn",
  "endpoint.breaker.closed": "good",
  "endpoint.failing": "warn",
  "endpoint.recovered": "good",
  "endpoint.disabled": "bad",
  "engine.outage.began": "bad",
  "engine.outage.ended": "good",
  "agent.connected": "good",
  "agent.disconnected": "warn",
  gap: "info",
}

export function toneOf(event: LiveEvent): Tone {
  if (event.type === "delivery.attempt" && event.success) return "good"
  return TONES[event.type] ?? "info"
}

const ABOUT: {
  readonly [T in LiveEvent["type"]]: (event: Extract<LiveEvent, { type: T }>) => ComponentChildren
} = {
  "delivery.attempt": ({ event_type, attempt_count, response_status, error, duration_ms, next_retry_at }) => (
    <>
      attempt {attempt_count} of {event_type} took {duration(duration_ms / 1000)}:{" "}
      {error ?? `answered with ${response_status}`}
      {next_retry_at !== null && `; next at ${localTime(next_retry_at)}`}
    </>
  ),
  "delivery.delivered": ({ event_type, attempt_count }) =>
    `${event_type} was delivered by attempt ${attempt_count}`,
  "delivery.dead": ({ event_type, reason, attempt_count, last_error }) =>
    `${event_type} was given up (${words(reason)}) after ${plural(attempt_count, "attempt")}${last_error === null ? "" : `: ${last_error}`}`,
  "endpoint.breaker.opened": ({ failures, last_error, report }) =>
    `the circuit breaker ${report ? "would have opened" : "opened"} after ${plural(failures, "failure")}${last_error === null ? "" : `: ${last_error}`}`,
  "endpoint.breaker.half_open": () => "the circuit breaker lets one request through",
  "endpoint.breaker.closed": () => "the circuit breaker closed",
  "endpoint.failing": ({ failures, last_error }) =>
    `fails: ${plural(failures, "attempt")} in a row without a success${last_error === null ? "" : `: ${last_error}`}`,
  "endpoint.recovered": () => "works again",
  "endpoint.disabled": ({ reason }) =>
    reason === "manual"
      ? "was disabled by an operator"
      : reason === "gone"
        ? "was disabled: the receiver answered 410"
        : "was disabled: it had no success for too long",
  "engine.outage.began": ({ endpoints, hosts }) =>
    `no answer from any of ${plural(endpoints, "endpoint")} on ${plural(hosts, "host")}: the network of this server seems to be down`,
  "engine.outage.ended": ({ uncounted_attempts }) =>
    `the network works again; ${plural(uncounted_attempts, "attempt")} are not counted`,
  "agent.connected": ({ version }) => `connected, ${version}`,
  "agent.disconnected": ({ detail, reason }) => `disconnected: ${detail ?? words(reason ?? "unknown")}`,
  gap: ({ count }) => `${count === null ? "events are" : `up to ${plural(count, "event")} are`} missing here`,
}

/** With links to its endpoint, delivery and message. */
export function LiveSentence({ event }: { readonly event: LiveEvent }) {
  const about = ABOUT[event.type] as ((one: LiveEvent) => ComponentChildren) | undefined
  return (
    <>
      <Subject event={event} /> {about === undefined ? event.type : about(event)}
    </>
  )
}

function Subject({ event }: { readonly event: LiveEvent }) {
  if ("agent" in event) return <a href={toAgent(event.app_id, event.agent)}>{event.agent}</a>
  if (!("webhook_id" in event)) return null
  const endpoint = <Id id={event.webhook_id} href={toEndpoint(event.app_id, event.webhook_id)} />
  if (!("webhook_delivery_id" in event)) return endpoint
  return (
    <>
      <Id id={event.webhook_delivery_id} href={toDelivery(event.webhook_delivery_id)} /> to {endpoint}
    </>
  )
}

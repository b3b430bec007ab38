/** The events that `posthorn.on` gives, in the seeds' words, and how the stream's events become these. */
import type { DisableReason } from "../core/gate.ts"
import type { DeadReason } from "../core/policy.ts"
import type { EndReason } from "../core/relay-results.ts"
import type {
  AgentEvent,
  BreakerEvent,
  DeliveryEvent,
  DisabledEvent,
  FailingEvent,
  InternalEvent,
  OutageChange,
} from "./event-stream.ts"

export const TOPIC = "gateway:webhooks"

interface CommonFields {
  readonly webhook_delivery_id: string
  /** The endpoint. */
  readonly webhook_id: string
  readonly app_id: string
  /** The tenant. */
  readonly org_id: string
  readonly message_id: string
  readonly session_id: string | null
  readonly event_type: string
  readonly attempt_count: number
  /** Milliseconds since 1970. */
  readonly at: number
}

/** Seed 000's WebhookDLQEvent. */
export interface DeadEvent extends CommonFields {
  readonly type: "delivery.dead"
  readonly reason: DeadReason
  readonly last_error: string | null
}

export interface DeliveredEvent extends CommonFields {
  readonly type: "delivery.delivered"
  readonly response_status: number | null
}

export interface AttemptEvent extends CommonFields {
  readonly type: "delivery.attempt"
  readonly attempt_id: string
  readonly success: boolean
  readonly response_status: number | null
  readonly error: string | null
  readonly duration_ms: number
  /** Null when no further attempt follows. */
  readonly next_retry_at: number | null
  /** The attempt disabled the endpoint: it was answered with 410, or the endpoint had failed for too long. */
  readonly endpoint_disabled: boolean
}

/** A change of an endpoint's circuit breaker. */
export interface BreakerChangedEvent {
  readonly type: BreakerEvent["type"]
  /** The endpoint. */
  readonly webhook_id: string
  readonly app_id: string
  /** The tenant. */
  readonly org_id: string
  /** When the next request may start; null unless the breaker opened. */
  readonly until: number | null
  /** When the breaker first opened in this outage; null unless it opened. */
  readonly since: number | null
  readonly failures: number
  readonly last_error: string | null
  /** The policy's breaker only reports: requests go on. */
  readonly report: boolean
  readonly at: number
}

/** An endpoint began to fail, is about to be disabled, or works again. */
export interface EndpointFailingEvent {
  readonly type: FailingEvent["type"]
  /** The endpoint. */
  readonly webhook_id: string
  readonly app_id: string
  /** The tenant. */
  readonly org_id: string
  /** Attempts in a row without a success. */
  readonly failures: number
  readonly since: number | null
  /** When the endpoint will be disabled if it goes on failing; null: never. */
  readonly disables_at: number | null
  readonly last_error: string | null
  readonly at: number
}

/** An endpoint was disabled: by hand, by a 410, or because it failed for too long. */
export interface EndpointDisabledEvent {
  readonly type: "endpoint.disabled"
  readonly webhook_id: string
  readonly app_id: string
  /** The tenant. */
  readonly org_id: string
  /** `manual`: by an operator. `gone`: the receiver answered 410. `failing`: it had no success for too long. */
  readonly reason: DisableReason
  /** Since when it failed; null when it was disabled by hand. */
  readonly since: number | null
  readonly at: number
}

/** The network of a process that delivers is down, as far as it can tell, or works again. */
export interface EngineOutageEvent {
  readonly type: OutageChange["type"]
  /** No endpoint has answered since then. */
  readonly since: number
  /** Endpoints without an answer since then, and their hosts. */
  readonly endpoints: number
  readonly hosts: number
  /** Attempts without an answer that were not counted; 0 at the beginning. */
  readonly uncounted_attempts: number
  readonly at: number
}

/** An agent's connection was accepted, or has ended. */
export interface AgentConnectionEvent {
  readonly type: AgentEvent["type"]
  /** The NAME of `relay://NAME`. */
  readonly agent: string
  readonly app_id: string
  /** The tenant. */
  readonly org_id: string
  /** The agent's own words. */
  readonly version: string
  /** Why it ended: one word of a closed list; null unless it has. */
  readonly reason: EndReason | null
  /** The same as a sentence, whose words may change. */
  readonly detail: string | null
  readonly at: number
}

/** Why events are missing. */
export const GAP_REASONS = [
  /** Lost on the way from another process. */
  "relay",
  /** Another process went away without saying how far it was. */
  "process_lost",
  /** Only in `GET /events`, after a reconnection: the buffer no longer has them, */
  "overflow",
  /** nobody listened meanwhile, so that nothing was recorded, */
  "idle",
  /** or the last event came from another process, or from this one before a restart. */
  "other_process",
] as const

/** Events are missing here: those after `from`, up to `to`. */
export interface GapEvent {
  readonly type: "gap"
  readonly reason: (typeof GAP_REASONS)[number]
  /** The id of the last event before the gap. Of `relay` and `process_lost` it is in the numbers of that other process. */
  readonly from: string
  /** The id at which the events go on; null when none follows. */
  readonly to: string | null
  /** How many events are missing at most, those of other applications and kinds included; null when that is not known. */
  readonly count: number | null
  readonly at: number
}

export type WebhookEvent = DeadEvent | DeliveredEvent | AttemptEvent
export type PublicEvent =
  | WebhookEvent
  | BreakerChangedEvent
  | EndpointFailingEvent
  | EndpointDisabledEvent
  | EngineOutageEvent
  | AgentConnectionEvent
  | GapEvent

export interface EventMap {
  "delivery.dead": DeadEvent
  "delivery.delivered": DeliveredEvent
  "delivery.attempt": AttemptEvent
  "endpoint.breaker.opened": BreakerChangedEvent
  "endpoint.breaker.half_open": BreakerChangedEvent
  "endpoint.breaker.closed": BreakerChangedEvent
  "endpoint.failing": EndpointFailingEvent
  "endpoint.recovered": EndpointFailingEvent
  "endpoint.disabled": EndpointDisabledEvent
  "engine.outage.began": EngineOutageEvent
  "engine.outage.ended": EngineOutageEvent
  "agent.connected": AgentConnectionEvent
  "agent.disconnected": AgentConnectionEvent
  gap: GapEvent
  [TOPIC]: WebhookEvent
}

const NAMES_BY_NAME: { readonly [name in keyof EventMap]: true } = {
  "delivery.dead": true,
  "delivery.delivered": true,
  "delivery.attempt": true,
  "endpoint.breaker.opened": true,
  "endpoint.breaker.half_open": true,
  "endpoint.breaker.closed": true,
  "endpoint.failing": true,
  "endpoint.recovered": true,
  "endpoint.disabled": true,
  "engine.outage.began": true,
  "engine.outage.ended": true,
  "agent.connected": true,
  "agent.disconnected": true,
  gap: true,
  [TOPIC]: true,
}
export const EVENT_NAMES = Object.keys(NAMES_BY_NAME) as readonly (keyof EventMap)[]

/** The attempt first, then the delivery's end. Events of tasks and workers are not public. */
export function toPublicEvents(event: InternalEvent): PublicEvent[] {
  if ("isReport" in event) return [toBreakerChanged(event)]
  if ("disablesAt" in event) return [toEndpointFailing(event)]
  if (event.type === "endpoint.disabled") return [toEndpointDisabled(event)]
  if ("isAnswered" in event) return [toEngineOutage(event)]
  if ("agent" in event) return [toAgentConnection(event)]
  if (!("delivery" in event)) return []
  const { type, delivery, change, attempt } = event
  const common = commonFields(event)
  const events: WebhookEvent[] = []
  if (attempt !== null) {
    events.push({
      ...common,
      type: "delivery.attempt",
      attempt_id: attempt.id,
      success: attempt.status === "succeeded",
      response_status: attempt.responseStatus,
      error: attempt.error,
      duration_ms: attempt.durationMs,
      next_retry_at: type === "delivery.settled" ? change.nextRetryAt : null,
      endpoint_disabled: change.disableEndpoint,
    })
  }
  if (type === "delivery.answered_late") return events
  if (change.status === "delivered") {
    events.push({ ...common, type: "delivery.delivered", response_status: attempt?.responseStatus ?? null })
  } else if (change.status === "dead") {
    const last_error = change.errorDetail ?? delivery.errorDetail
    events.push({ ...common, type: "delivery.dead", reason: change.deadReason!, last_error })
  }
  return events
}

function toEndpointFailing(event: FailingEvent): EndpointFailingEvent {
  const { type, endpoint, failures, since, disablesAt, error, at } = event
  const { id: webhook_id, appId: app_id, orgId: org_id } = endpoint
  return { type, webhook_id, app_id, org_id, failures, since, disables_at: disablesAt, last_error: error, at }
}

function toEndpointDisabled({ type, endpoint, reason, since, at }: DisabledEvent): EndpointDisabledEvent {
  const { id: webhook_id, appId: app_id, orgId: org_id } = endpoint
  return { type, webhook_id, app_id, org_id, reason, since, at }
}

function toEngineOutage({ type, since, endpoints, hosts, attempts, at }: OutageChange): EngineOutageEvent {
  return { type, since, endpoints, hosts, uncounted_attempts: attempts, at }
}

function toAgentConnection(event: AgentEvent): AgentConnectionEvent {
  const { type, agent, appId: app_id, orgId: org_id, version, reason, detail, at } = event
  return { type, agent, app_id, org_id, version, reason, detail, at }
}

function toBreakerChanged(event: BreakerEvent): BreakerChangedEvent {
  const { type, endpoint, until, since, failures, error, isReport, at } = event
  return {
    type,
    webhook_id: endpoint.id,
    app_id: endpoint.appId,
    org_id: endpoint.orgId,
    until,
    since,
    failures,
    last_error: error,
    report: isReport,
    at,
  }
}

function commonFields({ delivery, endpointId, appId, orgId, change, at }: DeliveryEvent): CommonFields {
  return {
    webhook_delivery_id: delivery.id,
    webhook_id: endpointId,
    app_id: appId,
    org_id: orgId,
    message_id: delivery.messageId,
    session_id: delivery.sessionId,
    event_type: delivery.eventType,
    attempt_count: change.attemptCount,
    at,
  }
}

/** The one stream of what happens in this process. Engine, schedule and resources emit; bus, log, relay and tenant webhooks subscribe. */
import type { AttemptKind } from "../core/attempt-kind.ts"
import type { DisableReason } from "../core/gate.ts"
import type { EndReason } from "../core/relay-results.ts"
import type { Change } from "../core/settle.ts"
import type { Logger } from "./log.ts"

interface DeliveryFacts {
  readonly id: string
  readonly messageId: string
  readonly sessionId: string | null
  readonly eventType: string
  /** Before the change; the last error of a delivery that ends without an attempt. */
  readonly errorDetail: string | null
  /** When its age began; null: with this change. */
  readonly ageFrom: number | null
  /** Left out where the event has no attempt. */
  readonly payload?: { readonly length: number } | null
}

interface AttemptFacts {
  readonly id: string
  readonly attemptNumber: number
  readonly status: "succeeded" | "failed" | "unknown"
  readonly responseStatus: number | null
  readonly responseBody: { readonly length: number } | null
  readonly error: string | null
  readonly startedAt: number
  readonly durationMs: number
}

/** How an attempt came about. */
interface StartFacts {
  readonly kind: AttemptKind
  /** Since when it could be made: the delivery was due, and nothing held its endpoint. */
  readonly dueAt: number
  /** Its span; null: nobody traced it. */
  readonly span: { readonly traceId: string } | null
}

export interface DeliveryEvent {
  /** `answered_late`: somebody changed or ended the delivery during the request. The attempt is recorded, the change was not made. */
  readonly type: "delivery.settled" | "delivery.answered_late"
  readonly delivery: DeliveryFacts
  readonly endpointId: string
  readonly appId: string
  readonly orgId: string
  readonly change: Change
  /** Null when no request was made. */
  readonly attempt: AttemptFacts | null
  /** Null when no request was made. */
  readonly start: StartFacts | null
  /** The operator's detail of a failure, which no tenant sees. */
  readonly detail: string | null
  /** When the outcome was known, in milliseconds since 1970. */
  readonly at: number
}

/** An operator changed an endpoint. */
export interface EndpointEvent {
  readonly type: `endpoint.${"created" | "updated" | "deleted" | "enabled"}`
  readonly endpoint: Readonly<{ id: string; uid: string | null; appId: string; orgId: string }>
  readonly at: number
}

/** By an operator, or because the receiver answered 410 or failed for too long. */
export interface DisabledEvent {
  readonly type: "endpoint.disabled"
  readonly endpoint: EndpointEvent["endpoint"]
  readonly reason: DisableReason
  /** Since when the endpoint failed; null when it was disabled by hand. */
  readonly since: number | null
  readonly at: number
}

/** `half_open`: the probe starts. A breaker that only reports says when it would open and close. */
export interface BreakerEvent {
  readonly type: `endpoint.breaker.${"opened" | "half_open" | "closed"}`
  readonly endpoint: EndpointEvent["endpoint"]
  /** When the next request starts; null unless it opened. */
  readonly until: number | null
  /** When it first opened in this outage; null unless it opened. */
  readonly since: number | null
  /** Attempts in a row without a success. */
  readonly failures: number
  /** The last one; null unless it opened. */
  readonly error: string | null
  readonly isReport: boolean
  /** When the outcome was known that changed the breaker. */
  readonly at: number
}

/** An endpoint began to fail, is about to be disabled, or works again. */
export interface FailingEvent {
  readonly type: "endpoint.failing" | "endpoint.recovered"
  readonly endpoint: EndpointEvent["endpoint"]
  /** Attempts in a row without a success; those before it, when it recovered. */
  readonly failures: number
  readonly since: number | null
  /** When the endpoint will be disabled if it goes on failing; null: never. */
  readonly disablesAt: number | null
  readonly error: string | null
  readonly at: number
}

/** The network of this process is down, as far as it can tell, or works again. */
export interface OutageChange {
  readonly type: `engine.outage.${"began" | "ended"}`
  /** No endpoint has answered since then. */
  readonly since: number
  /** Endpoints without an answer since then, and their hosts. */
  readonly endpoints: number
  readonly hosts: number
  /** Attempts that were not counted. */
  readonly attempts: number
  /** False: it has not ended, or it ended without an answer, because it lasted too long. */
  readonly isAnswered: boolean
  readonly at: number
}

/** An agent's connection to this process. */
export interface AgentEvent {
  readonly type: `agent.${"connected" | "disconnected"}`
  /** The NAME of `relay://NAME`. */
  readonly agent: string
  /** The agent's own words. */
  readonly version: string
  /** The number of its connections so far. */
  readonly epoch: number
  readonly appId: string
  readonly orgId: string
  /** Null unless it is disconnected. */
  readonly reason: EndReason | null
  /** A sentence; null unless it is disconnected. */
  readonly detail: string | null
  readonly at: number
}

/** The messages of one call, by whichever way they came in. They are committed, or part of the caller's transaction. */
export interface MessagesAccepted {
  readonly type: "messages.accepted"
  readonly orgId: string
  readonly messages: readonly { readonly appId: string; readonly duplicate: boolean }[]
}

export interface TaskFinished {
  readonly type: "task.finished"
  readonly task: Readonly<{ id: string; orgId: string; type: string }>
}

export type WorkerEvent =
  /** The lease of this worker ran out: other workers have its lanes. */
  | Readonly<{ type: "worker.lease_lost"; lanes: number }>
  /** This worker freed the lanes of another one, which stopped renewing its lease. */
  | Readonly<{ type: "worker.taken_over"; worker: string; workerId: number; lanes: number }>
  /** `deadlineMs` is that of the stop; null when the store was lost. */
  | Readonly<{ type: "worker.requests_cut_off"; requests: number; deadlineMs: number | null }>

export type InternalEvent =
  | DeliveryEvent
  | EndpointEvent
  | DisabledEvent
  | BreakerEvent
  | FailingEvent
  | OutageChange
  | AgentEvent
  | MessagesAccepted
  | TaskFinished
  | WorkerEvent

export interface EventSink {
  emit(event: InternalEvent): void
}

export interface EventSubscriber {
  /** Called for every event, thousands of times a second: ignores the others before it allocates anything. */
  handle(event: InternalEvent): void
}

export class EventStream implements EventSink {
  readonly #subscribers: readonly EventSubscriber[]
  readonly #logger: Logger

  constructor(logger: Logger, subscribers: readonly EventSubscriber[]) {
    this.#logger = logger
    this.#subscribers = subscribers
  }

  /** A subscriber that throws is logged. It stops neither the caller nor another subscriber. */
  emit(event: InternalEvent): void {
    for (const subscriber of this.#subscribers) {
      try {
        subscriber.handle(event)
      } catch (error) {
        this.#logger.error({ err: error, event: event.type }, "An event subscriber threw")
      }
    }
  }
}

/** The event of an operator's change, which has no attempt. */
export function amended(
  delivery: DeliveryFacts & Pick<DeliveryEvent, "endpointId" | "appId">,
  orgId: string,
  change: Change,
  at: number,
): DeliveryEvent {
  const { endpointId, appId } = delivery
  const none = { attempt: null, start: null, detail: null }
  return { type: "delivery.settled", delivery, endpointId, appId, orgId, change, ...none, at }
}

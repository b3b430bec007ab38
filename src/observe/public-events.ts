/** The events that `posthorn.on` gives, in the seeds' words, and how the stream's events become these. */
import type { DeadReason } from "../core/policy.ts"
import type { DeliveryEvent, InternalEvent } from "./event-stream.ts"

export const TOPIC = "gateway:webhooks"

interface CommonFields {
  readonly webhook_delivery_id: string
  /** The endpoint. */
  readonly webhook_id: string
  readonly app_id: string
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
  /** The answer was a 410 that disabled the endpoint. */
  readonly endpoint_disabled: boolean
}

export type WebhookEvent = DeadEvent | DeliveredEvent | AttemptEvent

export interface EventMap {
  "delivery.dead": DeadEvent
  "delivery.delivered": DeliveredEvent
  "delivery.attempt": AttemptEvent
  [TOPIC]: WebhookEvent
}

/** The attempt first, then the delivery's end. Other events than those of deliveries are not public. */
export function toPublicEvents(event: InternalEvent): WebhookEvent[] {
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

function commonFields({ delivery, endpointId, appId, change, at }: DeliveryEvent): CommonFields {
  return {
    webhook_delivery_id: delivery.id,
    webhook_id: endpointId,
    app_id: appId,
    message_id: delivery.messageId,
    session_id: delivery.sessionId,
    event_type: delivery.eventType,
    attempt_count: change.attemptCount,
    at,
  }
}

/** Tells the world what became of a delivery: events on the bus, and log lines in seed 004's words. */
import type { Change } from "../core/settle.ts"
import type { EventBus } from "../observe/events.ts"
import type { Logger } from "../observe/log.ts"
import type { Delivery, NewAttempt } from "../store/store.ts"

export interface Settled {
  readonly delivery: {
    readonly id: string
    readonly messageId: string
    readonly sessionId: string | null
    readonly eventType: string
    /** The error before this change; what ends without an attempt has it for its last. */
    readonly errorDetail: string | null
  }
  readonly endpointId: string
  readonly appId: string
  readonly change: Change
  readonly attempt: NewAttempt | null
  /** The operator's detail of a failure, which no tenant sees. */
  readonly detail: string | null
}

export class Reporter {
  readonly #bus: EventBus
  readonly #logger: Logger

  constructor(bus: EventBus, logger: Logger) {
    this.#bus = bus
    this.#logger = logger
  }

  /** Without an attempt: an operator's change. */
  amended(delivery: Delivery, change: Change, now: number): void {
    const { endpointId, appId } = delivery
    this.settled({ delivery, endpointId, appId, change, attempt: null, detail: null }, now)
  }

  /** The answer came after somebody changed or finished the delivery: an attempt, from which nothing follows for the delivery. */
  late(settled: Settled, now: number): void {
    if (settled.attempt === null) return
    this.#publishAttempt(settled, settled.attempt, null, now)
    this.#logger.info(
      {
        endpoint_id: settled.endpointId,
        delivery_id: settled.delivery.id,
        message_id: settled.delivery.messageId,
        http_code: settled.attempt.responseStatus,
        error: settled.attempt.error,
      },
      "Webhook answered after its delivery was changed or had ended",
    )
  }

  #publishAttempt(settled: Settled, attempt: NewAttempt, nextRetryAt: number | null, now: number): void {
    this.#bus.publish({
      ...common(settled, now),
      type: "delivery.attempt",
      attempt_id: attempt.id,
      success: attempt.status === "succeeded",
      response_status: attempt.responseStatus,
      error: attempt.error,
      duration_ms: attempt.durationMs,
      next_retry_at: nextRetryAt,
      endpoint_disabled: settled.change.disableEndpoint,
    })
  }

  settled(settled: Settled, now: number): void {
    const { delivery, change, attempt } = settled
    if (attempt !== null) this.#publishAttempt(settled, attempt, change.nextRetryAt, now)
    if (change.status === "delivered") {
      this.#bus.publish({
        ...common(settled, now),
        type: "delivery.delivered",
        response_status: attempt?.responseStatus ?? null,
      })
    } else if (change.status === "dead") {
      this.#bus.publish({
        ...common(settled, now),
        type: "delivery.dead",
        reason: change.deadReason!,
        last_error: change.errorDetail ?? delivery.errorDetail,
      })
    }
    this.#log(settled, now)
  }

  #log({ delivery, endpointId, change, attempt, detail }: Settled, now: number): void {
    const failed = change.status === "dead"
    if (!this.#logger.isLevelEnabled(failed ? "error" : "info")) return
    const fields = {
      subscriber_id: endpointId,
      endpoint_id: endpointId,
      delivery_id: delivery.id,
      message_id: delivery.messageId,
      event_type: delivery.eventType,
      attempts: change.attemptCount,
      ...(detail === null ? {} : { detail }),
    }
    const httpCode = attempt?.responseStatus ?? null
    if (failed) {
      const reasons = {
        final_http_code: httpCode,
        reason: change.deadReason,
        error: change.errorDetail ?? delivery.errorDetail,
      }
      this.#logger.error({ ...fields, ...reasons }, "Webhook delivery failed permanently")
    } else if (change.status === "delivered") {
      const result = { http_code: httpCode, success: true, duration_ms: attempt?.durationMs ?? 0 }
      this.#logger.info({ ...fields, ...result }, "Webhook delivery completed")
    } else {
      const next = {
        http_code: httpCode,
        success: false,
        error: change.errorDetail,
        next_attempt: change.attemptCount + 1,
        delay_seconds: Math.max(0, (change.nextRetryAt ?? now) - now) / 1000,
      }
      this.#logger.info({ ...fields, ...next }, "Webhook delivery scheduled for retry")
    }
  }
}

function common({ delivery, endpointId, appId, change }: Settled, now: number) {
  return {
    webhook_delivery_id: delivery.id,
    webhook_id: endpointId,
    app_id: appId,
    message_id: delivery.messageId,
    session_id: delivery.sessionId,
    event_type: delivery.eventType,
    attempt_count: change.attemptCount,
    at: now,
  }
}

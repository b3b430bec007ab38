/** Log lines of the event stream: deliveries in seed 004's words, and workers. */
import type { DeliveryEvent, EventSubscriber, InternalEvent } from "./event-stream.ts"
import type { Logger } from "./log.ts"

export class EventLog implements EventSubscriber {
  readonly #logger: Logger

  constructor(logger: Logger) {
    this.#logger = logger
  }

  handle(event: InternalEvent): void {
    switch (event.type) {
      case "delivery.settled":
        return this.#settled(event)
      case "delivery.answered_late":
        return this.#answeredLate(event)
      case "worker.lease_lost":
        return this.#logger.warn({ lanes: event.lanes }, "The lease ran out; other workers have taken over")
      case "worker.taken_over": {
        const { worker, workerId, lanes } = event
        const text = "A worker stopped renewing its lease; its lanes are taken over"
        return this.#logger.warn({ worker, worker_id: workerId, lanes }, text)
      }
      case "worker.requests_cut_off": {
        const { requests, deadlineMs } = event
        const text = "Requests under way were cut off; their deliveries stay due and are sent again"
        return this.#logger.warn(
          { requests, ...(deadlineMs === null ? {} : { deadline_ms: deadlineMs }) },
          text,
        )
      }
      default:
        return
    }
  }

  #settled(event: DeliveryEvent): void {
    const isDead = event.change.status === "dead"
    if (!this.#logger.isLevelEnabled(isDead ? "error" : "info")) return
    const { delivery, endpointId, change, attempt, detail, at } = event
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
    if (isDead) {
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
        delay_seconds: Math.max(0, (change.nextRetryAt ?? at) - at) / 1000,
      }
      this.#logger.info({ ...fields, ...next }, "Webhook delivery scheduled for retry")
    }
  }

  #answeredLate({ delivery, endpointId, attempt }: DeliveryEvent): void {
    const fields = {
      endpoint_id: endpointId,
      delivery_id: delivery.id,
      message_id: delivery.messageId,
      http_code: attempt?.responseStatus,
      error: attempt?.error,
    }
    this.#logger.info(fields, "Webhook answered after its delivery was changed or had ended")
  }
}

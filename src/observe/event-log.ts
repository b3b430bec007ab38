/** Log lines of the event stream: deliveries in seed 004's words, and workers. */
import type {
  AgentEvent,
  BreakerEvent,
  DeliveryEvent,
  DisabledEvent,
  EventSubscriber,
  FailingEvent,
  InternalEvent,
  OutageChange,
} from "./event-stream.ts"
import type { Logger } from "./log.ts"

const REOPENED = "A circuit breaker stays open; the next probe comes later"

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
      case "endpoint.failing":
      case "endpoint.recovered":
        return this.#failing(event)
      case "endpoint.disabled":
        return this.#disabled(event)
      case "endpoint.breaker.opened":
      case "endpoint.breaker.half_open":
      case "endpoint.breaker.closed":
        return this.#breaker(event)
      case "engine.outage.began":
      case "engine.outage.ended":
        return this.#outage(event)
      case "agent.connected":
      case "agent.disconnected":
        return this.#agent(event)
      default:
        return
    }
  }

  #failing({ type, endpoint, failures, since, disablesAt, error }: FailingEvent): void {
    const fields = { endpoint_id: endpoint.id, app_id: endpoint.appId, failures, error, since: iso(since) }
    if (type === "endpoint.recovered") return this.#logger.warn(fields, "An endpoint works again")
    this.#logger.warn({ ...fields, disables_at: iso(disablesAt) }, "An endpoint is failing")
  }

  #disabled({ endpoint, reason, since }: DisabledEvent): void {
    const fields = { endpoint_id: endpoint.id, app_id: endpoint.appId, since: iso(since) }
    switch (reason) {
      case "manual":
        return
      case "gone":
        return this.#logger.error(fields, "An endpoint answered 410 and is disabled")
      case "failing":
        return this.#logger.error(fields, "An endpoint failed for too long and is disabled")
      default:
        return reason satisfies never
    }
  }

  #breaker({ type, endpoint, until, since, failures, error, isReport, at }: BreakerEvent): void {
    const fields = { endpoint_id: endpoint.id, app_id: endpoint.appId, ...(isReport ? { report: true } : {}) }
    switch (type) {
      case "endpoint.breaker.opened": {
        const why = { failures, error, until: iso(until) }
        const text = isReport
          ? "A circuit breaker that only reports would open"
          : "A circuit breaker opened; nothing is sent to the endpoint until it is probed"
        // `since` is not before `at` when it opens first. A probe that fails opens it again: a warning each time would be one for each attempt.
        if (since !== null && since < at) return this.#logger.info({ ...fields, ...why }, REOPENED)
        return this.#logger.warn({ ...fields, ...why }, text)
      }
      case "endpoint.breaker.half_open":
        return this.#logger.info(fields, "A circuit breaker is half-open; one request probes the endpoint")
      case "endpoint.breaker.closed":
        // At `info`: the first success of an endpoint that failed is a warning of its own.
        return this.#logger.info(
          fields,
          isReport ? "A circuit breaker that only reports would close" : "A circuit breaker closed",
        )
      default:
        return type satisfies never
    }
  }

  #outage({ type, since, endpoints, hosts, attempts, isAnswered, at }: OutageChange): void {
    const fields = { since: iso(since), endpoints, hosts }
    if (type === "engine.outage.began") {
      const text =
        "No endpoint answers: this process's network seems to be down. Attempts are not counted; a few requests probe it"
      return this.#logger.error(fields, text)
    }
    const text = isAnswered
      ? "An endpoint answers again: the outage of this process's network is over"
      : "No endpoint has answered for a day; attempts are counted again"
    this.#logger.warn({ ...fields, uncounted_attempts: attempts, duration_ms: at - since }, text)
  }

  #agent({ type, agent, version, epoch, appId, reason, detail }: AgentEvent): void {
    const fields = { agent, app_id: appId, epoch }
    if (type === "agent.connected") return this.#logger.info({ ...fields, version }, "An agent is connected")
    this.#logger.info({ ...fields, reason, detail }, "An agent is disconnected")
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

function iso(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString()
}

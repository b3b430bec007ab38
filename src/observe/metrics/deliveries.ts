/** Metrics of attempts, deliveries, breakers and leases, from the event stream. */
import { Gauge, Histogram, type Registry } from "@prometheus-io/client"
import { NOTIFICATIONS_ORG } from "../../core/org.ts"
import { DEAD_REASONS } from "../../core/policy.ts"
import type { DeliveryEvent, EventSubscriber, InternalEvent } from "../event-stream.ts"
import { AttemptCounters } from "./attempts.ts"
import { type Cell, cellsBy, countedBy } from "./cells.ts"

const FINISHED = ["delivered", ...DEAD_REASONS] as const
const TRANSITIONS = ["opened", "half_open", "closed"] as const

/** From milliseconds to the three days that the retries of `standard` last. */
const LONG_BUCKETS = [0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14_400, 43_200, 86_400, 259_200]
const DELAY_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600]
const RETRY_BUCKETS = [1, 5, 15, 60, 300, 900, 1800, 3600, 7200, 18_000, 36_000, 50_400, 72_000, 86_400]

export class DeliveryMetrics implements EventSubscriber {
  readonly #attempts: AttemptCounters
  readonly #firstDelay: Histogram
  readonly #deliveryDuration: Histogram
  readonly #retryDelay: Histogram
  readonly #finished: { readonly [outcome in (typeof FINISHED)[number]]: Cell }
  readonly #transitions: { readonly [to in (typeof TRANSITIONS)[number]]: Cell }
  readonly #leasesLost: Cell
  readonly #ownOutage: Gauge

  constructor(registry: Registry) {
    const registers = [registry]
    this.#attempts = new AttemptCounters(registry)
    this.#firstDelay = new Histogram({
      name: "posthorn_first_attempt_delay_seconds",
      help: "Time from when a delivery could first be sent to the start of its first attempt. Holds of the endpoint, such as a pause or an open circuit breaker, are left out",
      buckets: DELAY_BUCKETS,
      registers,
    })
    this.#deliveryDuration = new Histogram({
      name: "posthorn_delivery_duration_seconds",
      help: "Time from the acceptance of a message (or its deliverAt, or an operator's retry, if that is later) to its delivery",
      buckets: LONG_BUCKETS,
      registers,
    })
    this.#retryDelay = new Histogram({
      name: "posthorn_retry_delay_seconds",
      help: "Time between a failed attempt and the due time of the next one",
      buckets: RETRY_BUCKETS,
      registers,
    })
    const finished = countedBy(
      registry,
      "posthorn_deliveries_finished_total",
      "Deliveries that ended: delivered, or dead with the reason",
      { outcome: FINISHED },
    )
    this.#finished = cellsBy(FINISHED, (outcome) => finished({ outcome }))
    const transitions = countedBy(
      registry,
      "posthorn_breaker_transitions_total",
      "Changes of circuit breakers. Breakers that only report are left out",
      { to: TRANSITIONS },
    )
    this.#transitions = cellsBy(TRANSITIONS, (to) => transitions({ to }))
    this.#leasesLost = countedBy(
      registry,
      "posthorn_leases_lost_total",
      "Times that the lease of this process ran out, so that other processes took its lanes",
      {},
    )({})
    this.#ownOutage = new Gauge({
      name: "posthorn_own_outage",
      help: "1 while this process takes its own network to be down, else 0",
      registers,
    })
  }

  /** Posthorn's own notifications have a counter of their own: an alert must not be about itself. */
  handle(event: InternalEvent): void {
    if (orgOf(event) === NOTIFICATIONS_ORG) return
    switch (event.type) {
      case "delivery.settled":
        this.#attempted(event)
        return this.#settled(event)
      case "delivery.answered_late":
        return this.#attempted(event)
      case "endpoint.breaker.opened":
      case "endpoint.breaker.half_open":
      case "endpoint.breaker.closed":
        if (!event.isReport) this.#transitions[breakerState(event.type)].value++
        return
      case "engine.outage.began":
        return this.#ownOutage.set(1)
      case "engine.outage.ended":
        return this.#ownOutage.set(0)
      case "worker.lease_lost":
        this.#leasesLost.value++
        return
      default:
        return
    }
  }

  #attempted({ attempt, start, delivery, change, type, at }: DeliveryEvent): void {
    if (attempt === null || start === null || attempt.status === "unknown") return
    this.#attempts.add(attempt, start.kind, delivery.payload?.length ?? 0, start.span?.traceId ?? null)
    if (start.kind === "first") this.#firstDelay.observe(secondsBetween(start.dueAt, attempt.startedAt))
    if (type === "delivery.settled" && change.status === "failed" && change.nextRetryAt !== null)
      this.#retryDelay.observe(secondsBetween(at, change.nextRetryAt))
  }

  #settled({ change, delivery, at }: DeliveryEvent): void {
    if (change.status === "delivered") {
      this.#finished.delivered.value++
      this.#deliveryDuration.observe(secondsBetween(delivery.ageFrom ?? at, at))
    } else if (change.status === "dead") this.#finished[change.deadReason!].value++
  }
}

/** Not negative: dates are of the wall clock, which may be ahead of the steady one. */
function secondsBetween(from: number, to: number): number {
  return Math.max(0, to - from) / 1000
}

function breakerState(type: `endpoint.breaker.${(typeof TRANSITIONS)[number]}`) {
  return type.slice("endpoint.breaker.".length) as (typeof TRANSITIONS)[number]
}

function orgOf(event: InternalEvent): string | null {
  if ("endpoint" in event) return event.endpoint.orgId
  return "orgId" in event ? event.orgId : null
}

/** Metrics of engine, stores, schedules and API, measured through `Instruments`. */
import { Counter, Gauge, Histogram, type Registry } from "@prometheus-io/client"
import {
  ALERT_CHANNEL_KINDS,
  type AlertChannelKind,
  NOTIFICATION_RESULTS,
  type NotificationOutcome,
} from "../../core/alert-channel-kinds.ts"
import { type PosthornError, STORE_CODES } from "../../core/errors.ts"
import { INBOUND_RESULTS, type InboundResult } from "../../core/inbound-results.ts"
import type { AcknowledgementResult, ConnectionResult } from "../../core/relay-results.ts"
import type { Instruments } from "../instruments.ts"
import { type Cell, cellsBy, countedBy } from "./cells.ts"
import { RelayMetrics } from "./relay.ts"

const METHODS: readonly string[] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
const STORE_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const BATCH_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]

export class EngineMetrics implements Instruments {
  readonly #accepted: Cell
  readonly #lanesClaimed: Cell
  readonly #claimDuration: Histogram
  readonly #fetched: Cell
  readonly #fetchDuration: Histogram
  readonly #batchOutcomes: Histogram
  readonly #settleDuration: Histogram
  readonly #retriesDeferred: Cell
  readonly #leaseRenewals: Cell
  readonly #takenOver: Cell
  readonly #storeErrors: { readonly [code in (typeof STORE_CODES)[number]]: Cell }
  readonly #redisErrors: Cell
  readonly #notifications: (labels: { readonly kind: string; readonly result: string }) => Cell
  readonly #requests: Counter<"method" | "route" | "status">
  readonly #requestDuration: Histogram
  readonly #inbound: { readonly [result in InboundResult]: Cell }
  readonly #inboundDuration: Histogram
  readonly relay: RelayMetrics
  readonly #streamReaders: Gauge
  readonly #streamsDropped: Cell
  #usedSlots = 0
  #freeSlots = 0

  constructor(registry: Registry) {
    const registers = [registry]
    const counter = (name: string, help: string) => countedBy(registry, name, help, {})({})
    const histogram = (name: string, help: string, buckets: number[]) =>
      new Histogram({ name, help, buckets, registers })
    this.#accepted = counter(
      "posthorn_messages_accepted_total",
      "Messages accepted. Repeats with a known idempotency key are left out",
    )
    this.#lanesClaimed = counter("posthorn_lanes_claimed_total", "Lanes that this process claimed")
    this.#claimDuration = histogram(
      "posthorn_claim_duration_seconds",
      "Time of a claim of due lanes",
      STORE_BUCKETS,
    )
    this.#fetched = counter(
      "posthorn_deliveries_fetched_total",
      "Deliveries fetched from the store. Deliveries handed over in the process are left out",
    )
    this.#fetchDuration = histogram(
      "posthorn_fetch_duration_seconds",
      "Time of a fetch of due deliveries",
      STORE_BUCKETS,
    )
    this.#batchOutcomes = histogram(
      "posthorn_settle_batch_outcomes",
      "Outcomes that were written in one transaction",
      BATCH_BUCKETS,
    )
    this.#settleDuration = histogram(
      "posthorn_settle_duration_seconds",
      "Time to write a batch of outcomes",
      STORE_BUCKETS,
    )
    this.#retriesDeferred = counter(
      "posthorn_retry_budget_deferred_total",
      "Times that a lane put its retries off, since its retry budget was spent",
    )
    this.#leaseRenewals = counter("posthorn_lease_renewals_total", "Renewals of the lease of this process")
    this.#takenOver = counter(
      "posthorn_lanes_taken_over_total",
      "Lanes that this process freed, since their worker stopped renewing its lease",
    )
    const errors = countedBy(
      registry,
      "posthorn_store_errors_total",
      "Calls that the store could not carry out, by the error's code",
      { code: STORE_CODES },
    )
    this.#storeErrors = cellsBy(STORE_CODES, (code) => errors({ code }))
    this.#redisErrors = counter("posthorn_redis_errors_total", "Calls that Redis could not carry out")
    this.#notifications = countedBy(
      registry,
      "posthorn_notifications_total",
      "Attempts to send notifications of alerts and dead letters. After dead, none follows",
      { kind: ALERT_CHANNEL_KINDS, result: NOTIFICATION_RESULTS },
    )
    this.#requests = new Counter({
      name: "posthorn_api_requests_total",
      help: "Requests that the API answered. The route is the pattern, or none; series appear with their first request",
      labelNames: ["method", "route", "status"],
      registers,
    })
    this.#requestDuration = histogram(
      "posthorn_api_request_duration_seconds",
      "Time to answer a request of the API",
      STORE_BUCKETS,
    )
    const inbound = countedBy(
      registry,
      "posthorn_inbound_requests_total",
      "Requests to sources, by what became of them",
      { result: INBOUND_RESULTS },
    )
    this.#inbound = cellsBy(INBOUND_RESULTS, (result) => inbound({ result }))
    this.#inboundDuration = histogram(
      "posthorn_inbound_request_duration_seconds",
      "Time to answer a request to a source, the reading of its body included",
      STORE_BUCKETS,
    )
    this.relay = new RelayMetrics(registry)
    this.#streamReaders = new Gauge({
      name: "posthorn_event_stream_readers",
      help: "Connections that read the live events of this process",
      registers,
    })
    this.#streamReaders.set(0)
    this.#streamsDropped = counter(
      "posthorn_event_stream_dropped_total",
      "Readers of live events that were disconnected, since they did not keep up",
    )
    const slots = () => [this.#usedSlots, this.#freeSlots] as const
    new Gauge({
      name: "posthorn_slots",
      help: "Requests that may be in flight: used, their outcomes not yet written included, and free",
      labelNames: ["state"],
      registers,
      collect() {
        const [used, free] = slots()
        this.set({ state: "used" }, used)
        this.set({ state: "free" }, free)
      },
    })
  }

  now(): number {
    return performance.now()
  }

  messagesAccepted(messages: readonly { duplicate: boolean }[]): void {
    for (const { duplicate } of messages) if (!duplicate) this.#accepted.value++
  }

  lanesClaimed(lanes: number, tookMs: number): void {
    this.#lanesClaimed.value += lanes
    this.#claimDuration.observe(tookMs / 1000)
  }

  deliveriesFetched(deliveries: number, tookMs: number): void {
    this.#fetched.value += deliveries
    this.#fetchDuration.observe(tookMs / 1000)
  }

  outcomesSettled(outcomes: number, tookMs: number): void {
    this.#batchOutcomes.observe(outcomes)
    this.#settleDuration.observe(tookMs / 1000)
  }

  retriesDeferred(): void {
    this.#retriesDeferred.value++
  }

  leaseRenewed(): void {
    this.#leaseRenewals.value++
  }

  lanesTakenOver(lanes: number): void {
    this.#takenOver.value += lanes
  }

  storeFailed({ code }: PosthornError): void {
    if (code in this.#storeErrors) this.#storeErrors[code as (typeof STORE_CODES)[number]].value++
  }

  redisFailed(): void {
    this.#redisErrors.value++
  }

  requestAnswered(method: string, route: string | null, status: number, tookMs: number): void {
    // A client can send any method. Routes and statuses are the server's own.
    const known = METHODS.includes(method) ? method : "other"
    this.#requests.inc({ method: known, route: route ?? "none", status }, 1)
    this.#requestDuration.observe(tookMs / 1000)
  }

  inboundAnswered(result: InboundResult, tookMs: number): void {
    this.#inbound[result].value++
    this.#inboundDuration.observe(tookMs / 1000)
  }

  agentConnection(result: ConnectionResult): void {
    this.relay.connection(result)
  }

  eventAcknowledged(result: AcknowledgementResult): void {
    this.relay.acknowledgement(result)
  }

  notificationSettled(kind: AlertChannelKind, result: NotificationOutcome): void {
    this.#notifications({ kind, result }).value++
  }

  eventStreamReaders(readers: number): void {
    this.#streamReaders.set(readers)
  }

  eventStreamDropped(): void {
    this.#streamsDropped.value++
  }

  slotsChanged(used: number, free: number): void {
    this.#usedSlots = used
    this.#freeSlots = free
  }
}

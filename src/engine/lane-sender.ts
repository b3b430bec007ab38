/** A lane's deliveries in hand: queued, in flight, then settled or given back. Each delivery leaves in one of the last two ways. */
import type { GateUpdate } from "../core/gate.ts"
import { isAttempt, isSuccess } from "../core/outcome.ts"
import type { Change } from "../core/settle.ts"
import { breakerEvent, failingEvent } from "../observe/endpoint-events.ts"
import type { DeliveryEvent } from "../observe/event-stream.ts"
import type {
  ClaimedDelivery,
  GivenBack,
  LaneClaim,
  LaneSession,
  Settlement,
  SettleResult,
} from "../store/store.ts"
import { attempt, type Tried, toGivenBack, toSettlement } from "./attempt.ts"
import type { LaneDependencies } from "./lane-dependencies.ts"
import type { Ended, Probe } from "./lane-gate.ts"
import { isRetry, LaneQueue } from "./lane-queue.ts"
import type { LaneState } from "./lane-state.ts"
import type { Start } from "./own-outage.ts"
import { PendingSettlement, type SettlementListener } from "./pending-settlement.ts"
import type { Slot } from "./slots.ts"

/** How soon to look again at a lease that was not renewed in time. */
const LEASE_RETRY_MS = 500

export interface SenderListener {
  /** A request ended, or a slot may be free. */
  readonly step: () => void
  isEnded(): boolean
  /** Whether nothing else of the lane is due in the store, as far as is known. */
  isDry(): boolean
  /** A delivery of the lane is due in the store at this time. */
  dueAt(at: number | null): void
  /** The gate closed until this time; null: until somebody changes the endpoint. */
  held(until: number | null): void
  /** Deliveries went back to the store that a running fetch may have missed. */
  returned(): void
  outcomeLost(): void
  settled(): void
}

export class LaneSender implements SettlementListener {
  readonly queue = new LaneQueue()
  /** The `seq` of each delivery whose request is in flight. */
  readonly sending = new Set<number>()
  readonly #deps: LaneDependencies
  readonly #claim: LaneClaim
  readonly #lane: LaneState
  readonly #session: LaneSession
  readonly #listener: SenderListener
  #unsettled = 0
  #started = 0
  #retriesInFlight = 0
  #areRetriesBlocked = false

  constructor(
    deps: LaneDependencies,
    claim: LaneClaim,
    lane: LaneState,
    session: LaneSession,
    listener: SenderListener,
  ) {
    this.#deps = deps
    this.#claim = claim
    this.#lane = lane
    this.#session = session
    this.#listener = listener
  }

  /** Outcomes and given-back deliveries that are not written yet. */
  get unsettled(): number {
    return this.#unsettled
  }

  get started(): number {
    return this.#started
  }

  /** Retries that are queued or in flight. */
  get retriesInHand(): number {
    return this.queue.retries + this.#retriesInFlight
  }

  /** The lane has only retries in hand, and they get no slot. */
  get waitsForRetrySlot(): boolean {
    return this.#areRetriesBlocked && this.sending.size === 0 && this.queue.length === this.queue.retries
  }

  /** Starts queued deliveries while gate, lease and slots allow. Returns when to try again, if that is known. */
  start(): number | null {
    const { clock, slots, holds, outage } = this.#deps
    const { gate, limits } = this.#lane
    this.#areRetriesBlocked = false
    for (;;) {
      const head = this.#areRetriesBlocked ? this.queue.firstAttempt : this.queue.head
      if (head === undefined) return null
      const now = clock.now()
      const closed = gate.mayStart(now, this.sending.size, limits)
      if (closed !== null) return closed.until
      if (!holds()) return now + LEASE_RETRY_MS
      if (isRetry(head) && this.#deferRetries(now)) continue
      if (!outage.mayStart(this.#lane, this.#listener.step)) return null
      const slot = slots.take(this.sending.size, head.stalls, isRetry(head), this.#listener.step)
      if (slot === null) {
        if (!isRetry(head)) return null
        this.#areRetriesBlocked = true
        continue
      }
      const probe = gate.started(now, limits)
      const delivery = this.#areRetriesBlocked ? this.queue.shiftFirstAttempt()! : this.queue.shift()!
      this.sending.add(delivery.seq)
      this.#started++
      if (isRetry(delivery)) this.#retriesInFlight++
      void this.#deliver(delivery, slot, probe, outage.started())
    }
  }

  /** Gives the queued retries back while the budget is spent, so that first attempts are fetched in their place. */
  #deferRetries(now: number): boolean {
    const { gate, limits } = this.#lane
    const deferred = gate.mayRetry(now, this.#retriesInFlight, limits)
    if (deferred === null) return false
    this.#deps.instruments.retriesDeferred()
    this.#listener.dueAt(deferred.until)
    void this.giveBack(this.queue.takeRetries())
    return true
  }

  /** Claimed → sent → settled → reported. */
  async #deliver(delivery: ClaimedDelivery, slot: Slot, probe: Probe, start: Start): Promise<void> {
    if (probe !== null) this.#emitHalfOpen()
    const tried = await attempt(this.#deps, this.#lane, delivery, probe !== null)
    this.sending.delete(delivery.seq)
    if (isRetry(delivery)) this.#retriesInFlight--
    const now = this.#deps.clock.now()
    const isCounted = this.#deps.outage.ended(this.#lane, tried, start)
    if (tried.outcome.kind === "interrupted" || !isCounted) {
      endSpan(tried, null)
      this.#lane.gate.ended(probe)
      this.#listener.dueAt(now)
      return this.giveBack([delivery], tried).finally(() => this.#deps.slots.release(slot))
    }
    this.#unsettled++
    let change: Change | null = null
    try {
      const settlement = this.#settlementOf(delivery, tried, probe)
      change = settlement.change
      this.#deps.settlements.settle(new PendingSettlement(this, this.#session, settlement, tried, slot, now))
    } catch (error) {
      tried.result?.settled?.(null)
      return this.#outcomeLost(delivery, slot, error)
    } finally {
      endSpan(tried, change)
    }
    this.#listener.step()
  }

  #emitHalfOpen(): void {
    const { target, gate } = this.#lane
    const { events, clock } = this.#deps
    if (target !== null) events.emit(breakerEvent("half_open", target.endpoint, gate.protection, clock.now()))
  }

  #settlementOf(delivery: ClaimedDelivery, tried: Tried, probe: Probe): Settlement {
    const { gate, limits, target } = this.#lane
    const settlement = toSettlement(this.#deps, delivery, tried, (target ?? tried.target)?.policy)
    const { holdLaneUntil: holdUntil, disableEndpoint: disables } = settlement.change
    const ended = this.#endedOf(delivery, tried, probe, settlement.change.nextRetryAt)
    // The lane has another owner, or a new run: the store refuses this outcome.
    if (this.#listener.isEnded()) return settlement
    const update = gate.learn(ended, limits, { holdUntil, disables })
    if (update?.closes) this.#listener.held(gate.closed(ended.now)?.until ?? null)
    if (update === null) return settlement
    const disableEndpoint = update.disables !== null
    return { ...settlement, change: { ...settlement.change, disableEndpoint }, gate: update }
  }

  #endedOf(
    delivery: ClaimedDelivery,
    { outcome, startedAt }: Tried,
    probe: Probe,
    retryAt: number | null,
  ): Ended {
    const { clock, load } = this.#deps
    const { concurrency } = this.#lane.limits
    const now = clock.now()
    return {
      outcome,
      probe,
      sending: this.sending.size + 1,
      most: isSuccess(outcome) ? load.mostAfter(now - startedAt, concurrency) : concurrency,
      isBacklogGone: this.queue.length + this.sending.size === 0 && this.#listener.isDry(),
      isRetry: isRetry(delivery),
      retryAt,
      now,
    }
  }

  written(pending: PendingSettlement, result: SettleResult): void {
    const { settledAt, slot } = pending
    const { change, attempt, gate } = pending.settlement
    const { clock, load, transport } = this.#deps
    try {
      pending.tried.result?.settled?.(result === "applied" ? change.status : null)
      if (gate !== null && result !== "stale") this.#lane.gate.written(this.#claim.token, gate.revision)
      else if (gate !== null && !this.#listener.isEnded()) this.#lane.gate.unlearn()
      load.wrote(clock.now() - settledAt)
      this.#listener.dueAt(result === "applied" ? change.nextRetryAt : clock.now())
      if (result === "applied") this.#emit("delivery.settled", pending)
      else if (result === "superseded" && attempt !== null) this.#emit("delivery.answered_late", pending)
      if (result !== "stale") this.#emitTransitions(gate, change.errorDetail, settledAt)
      if (change.disableEndpoint) transport.forget(this.#claim.endpointId)
    } finally {
      this.#settled(slot)
    }
  }

  #emit(type: DeliveryEvent["type"], { settlement, settledAt: at, tried }: PendingSettlement): void {
    const { delivery, change, attempt } = settlement
    const { endpointId, appId } = this.#claim
    const { orgId } = this.#lane
    const { events } = this.#deps
    const start = attempt === null ? null : tried
    const detail = tried.result?.detail ?? null
    events.emit({ type, delivery, endpointId, appId, orgId, change, attempt, start, detail, at })
    const reason = settlement.gate?.disables ?? null
    if (reason === null || tried.target === null) return
    const { endpoint } = tried.target
    const since = settlement.gate?.protection.failingSince ?? at
    events.emit({ type: "endpoint.disabled", endpoint, reason, since, at })
  }

  #emitTransitions(gate: GateUpdate | null, error: string | null, at: number): void {
    const { target } = this.#lane
    if (gate === null || target === null) return
    const { endpoint, policy } = target
    const isReport = policy.breaker !== false && policy.breaker.report
    for (const to of gate.transitions)
      this.#deps.events.emit(
        to === "opened" || to === "closed"
          ? breakerEvent(to, endpoint, gate.protection, at, error, isReport)
          : failingEvent(to, endpoint, gate.protection, gate.previous, policy, at, error),
      )
  }

  refused({ settlement, slot, tried }: PendingSettlement, error: unknown): void {
    tried.result?.settled?.(null)
    this.#outcomeLost(settlement.delivery, slot, error)
  }

  #outcomeLost({ id }: ClaimedDelivery, slot: Slot, error: unknown): void {
    const text = "An outcome could not be written; the delivery will be repeated"
    this.#deps.logger.error({ err: error, delivery_id: id }, text)
    this.#lane.gate.unlearn()
    this.#listener.outcomeLost()
    this.#settled(slot)
  }

  #settled(slot: Slot): void {
    this.#unsettled--
    try {
      this.#listener.settled()
    } finally {
      this.#deps.slots.release(slot)
    }
  }

  /** Retries until written. If the run ends or the process stops first, the lane's next owner finds the deliveries. */
  async giveBack(deliveries: readonly ClaimedDelivery[], tried: Tried | null = null): Promise<void> {
    const { clock, storeRetryMs, stopping } = this.#deps
    const unsent = deliveries.map((one) => toGivenBack(this.#deps, one, tried))
    this.#unsettled++
    let isLate = false
    while (!(await this.#wasGivenBack(unsent)) && !this.#listener.isEnded() && !stopping()) {
      isLate = true
      await new Promise<void>((resolve) => clock.setTimer(storeRetryMs(), resolve))
    }
    this.#unsettled--
    if (isLate) this.#listener.returned()
    this.#listener.step()
  }

  async #wasGivenBack(unsent: readonly GivenBack[]): Promise<boolean> {
    try {
      await this.#session.giveBack(unsent)
      return true
    } catch (error) {
      this.#deps.logger.warn({ err: error }, "Unsent deliveries could not be given back; trying again")
      return false
    }
  }
}

function endSpan({ span, outcome, result }: Tried, change: Change | null): void {
  if (span === null) return
  const retryDelayMs = change !== null && isAttempt(outcome) ? delayAfter(change) : null
  span.ended({ outcome, responseStatus: result?.responseStatus ?? null, change, retryDelayMs })
}

/** From the time that `settle` took as now: a clock that is read again adds the time between the two. */
function delayAfter({ status, nextRetryAt, lastAttemptedAt }: Change): number | null {
  return status === "failed" && nextRetryAt !== null && lastAttemptedAt !== null
    ? nextRetryAt - lastAttemptedAt
    : null
}

/** The deliveries in hand of one lane: queued, sent, settled or given back. Every delivery that comes in leaves in one of the last two ways. */
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
import { LaneQueue } from "./lane-queue.ts"
import type { LaneState } from "./lane-state.ts"
import { PendingSettlement, type SettlementListener } from "./pending-settlement.ts"
import type { Slot } from "./slots.ts"

/** A lease that could not be renewed in time may yet be. */
const LEASE_RETRY_MS = 500

export interface SenderListener {
  /** Something ended, or a slot may be free. */
  readonly step: () => void
  isEnded(): boolean
  /** A delivery of the lane is due in the store at this time. */
  dueAt(at: number | null): void
  /** The receiver wants nothing before this time; null: until somebody changes the endpoint. */
  held(until: number | null): void
  /** Deliveries that a fetch under way cannot have found are back in the store. */
  returned(): void
  outcomeLost(): void
  settled(): void
}

export class LaneSender implements SettlementListener {
  readonly queue = new LaneQueue()
  /** The numbers of the deliveries whose requests are in flight. */
  readonly sending = new Set<number>()
  readonly #deps: LaneDependencies
  readonly #claim: LaneClaim
  readonly #lane: LaneState
  readonly #session: LaneSession
  readonly #listener: SenderListener
  #unsettled = 0
  #started = 0

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

  /** Outcomes and unsent deliveries on their way into the store. */
  get unsettled(): number {
    return this.#unsettled
  }

  get started(): number {
    return this.#started
  }

  /** Starts what may start. When the gate or the lease is closed for a time: until when. */
  start(): number | null {
    const { clock, slots, holds } = this.#deps
    const { gate, limits } = this.#lane
    for (let head = this.queue.head; head !== undefined; head = this.queue.head) {
      const now = clock.now()
      const closed = gate.mayStart(now, this.sending.size, limits)
      if (closed !== null) return closed.until
      if (!holds()) return now + LEASE_RETRY_MS
      const slot = slots.take(this.sending.size, head.stalls, this.#listener.step)
      if (slot === null) return null
      gate.started(now, limits)
      const delivery = this.queue.shift()!
      this.sending.add(delivery.seq)
      this.#started++
      void this.#deliver(delivery, slot)
    }
    return null
  }

  /** Claimed → sent → settled → reported. */
  async #deliver(delivery: ClaimedDelivery, slot: Slot): Promise<void> {
    const tried = await attempt(this.#deps, this.#lane, delivery)
    this.sending.delete(delivery.seq)
    const now = this.#deps.clock.now()
    if (tried.outcome.kind === "interrupted") {
      this.#listener.dueAt(now)
      return this.giveBack([delivery], tried).finally(() => this.#deps.slots.release(slot))
    }
    this.#unsettled++
    try {
      this.#learn(tried)
      const settlement = this.#settlementOf(delivery, tried)
      this.#deps.settlements.settle(new PendingSettlement(this, this.#session, settlement, tried, slot, now))
    } catch (error) {
      return this.#outcomeLost(delivery, slot, error)
    }
    this.#listener.step()
  }

  #learn({ outcome, startedAt }: Tried): void {
    const { clock, load } = this.#deps
    const { concurrency } = this.#lane.limits
    const isSuccess = outcome.kind === "response" && outcome.status < 300
    const most = isSuccess ? load.mostAfter(clock.now() - startedAt, concurrency) : concurrency
    this.#lane.gate.learn(outcome, this.sending.size + 1, most)
  }

  #settlementOf(delivery: ClaimedDelivery, tried: Tried): Settlement {
    const policy = (this.#lane.target ?? tried.target)?.policy
    const settlement = toSettlement(this.#deps, delivery, tried, policy)
    const { disableEndpoint, holdLaneUntil } = settlement.change
    if (!disableEndpoint && holdLaneUntil === null) return settlement
    const gate = this.#lane.gate.close(holdLaneUntil, disableEndpoint)
    this.#listener.held(holdLaneUntil)
    return { ...settlement, gate }
  }

  written({ settlement, settledAt, tried, slot }: PendingSettlement, result: SettleResult): void {
    const { delivery, change, attempt, gate } = settlement
    const { endpointId, appId } = this.#claim
    const { clock, load, reporter, transport } = this.#deps
    try {
      if (gate !== null) this.#lane.gate.written(gate.revision)
      load.wrote(clock.now() - settledAt)
      this.#listener.dueAt(result === "applied" ? change.nextRetryAt : clock.now())
      const detail = tried.result?.detail ?? null
      const settled = { delivery, endpointId, appId, change, attempt, detail }
      if (result === "applied") reporter.settled(settled, settledAt)
      else if (result === "superseded") reporter.late(settled, settledAt)
      if (change.disableEndpoint) transport.forget(endpointId)
    } finally {
      this.#settled(slot)
    }
  }

  refused({ settlement, slot }: PendingSettlement, error: unknown): void {
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

  /** Tries until it is written, the run has ended or the process stops: then the lane's next owner finds them. */
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

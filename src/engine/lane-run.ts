/**
 * A lane run, from claim to release: fetch due deliveries, send them, fetch more. `lane-machine.ts` decides, `lane-sender.ts` has the
 * deliveries in hand, and this class has the effects.
 */
import { Alarm } from "../core/alarm.ts"
import type {
  ClaimedDelivery,
  LaneClaim,
  LaneListener,
  LaneSession,
  LaneStore,
  Priority,
} from "../store/store.ts"
import type { LaneDependencies } from "./lane-dependencies.ts"
import { factsOf, mustGiveWay } from "./lane-facts.ts"
import type { LeaveReason, Phase, Supply, SupplyKnown } from "./lane-machine.ts"
import * as machine from "./lane-machine.ts"
import { higherOf } from "./lane-queue.ts"
import { type LaneReading, readLane } from "./lane-reading.ts"
import { LaneSender } from "./lane-sender.ts"
import type { LaneState } from "./lane-state.ts"

export interface LaneRunListener {
  /** The run began or ceased to rest. A resting run takes no place. */
  rests(rests: boolean): void
  /** The lane goes back to the schedule, due at `nextDueAt`; null: nothing waits. */
  finished(nextDueAt: number | null): void
}

export class LaneRun implements LaneListener {
  readonly claim: LaneClaim
  readonly #deps: LaneDependencies
  readonly #lane: LaneState
  readonly #session: LaneSession
  readonly #sender: LaneSender
  readonly #listener: LaneRunListener
  readonly #alarm: Alarm
  #phase: Phase = { kind: "working" }
  #rests = false
  /** This run has read the endpoint, which may have another URL than the run before knew. */
  #isRead = false
  #supply: Supply = { kind: "more", until: null }
  /** Handoffs during a fetch. They wait for it, since it may bring a newer version of the endpoint. */
  #arrivals: ClaimedDelivery[] = []
  /** The last fetch left due retries in the store, since the budget has none left. */
  #areRetriesDeferred = false
  /** The highest priority of wakes during a fetch. */
  #wokenFor: Priority | null = null

  constructor(
    deps: LaneDependencies,
    store: LaneStore,
    claim: LaneClaim,
    lane: LaneState,
    listener: LaneRunListener,
  ) {
    this.#deps = deps
    this.claim = claim
    this.#lane = lane
    lane.gate.begin()
    this.#listener = listener
    this.#alarm = new Alarm(deps.clock, this.#step)
    this.#session = store.openLane(claim, this, lane.target?.endpoint.version ?? null)
    this.#sender = new LaneSender(deps, claim, lane, this.#session, {
      step: this.#step,
      isEnded: () => this.#phase.kind === "ended",
      isDry: () => this.#supply.kind === "dry",
      dueAt: (at) => {
        this.#supply = machine.dueAt(this.#supply, at)
      },
      held: (until) => {
        this.#giveBackQueue()
        this.#supply = machine.heldUntil(this.#supply, until)
      },
      returned: () => {
        this.#supply = machine.woken(this.#supply)
      },
      outcomeLost: () => this.#leave("outcome lost"),
      settled: () => {
        // While its head was in flight, a fetch of an ordered lane found nothing; while the budget was spent, a fetch left retries behind.
        if (lane.isOrdered || this.#mayFetchRetries()) this.#supply = machine.woken(this.#supply)
        this.#step()
      },
    })
  }

  get sending(): ReadonlySet<number> {
    return this.#sender.sending
  }

  /** Starts the run, or tells it that deliveries may be due. A slow request in flight does not hold up the fetch. */
  wake(priority?: Priority): void {
    const isFetching = this.#supply.kind === "fetching"
    if (priority !== undefined && isFetching) this.#wokenFor = higherOf(priority, this.#wokenFor)
    const overtakes = priority !== undefined && this.#sender.queue.holdsLowerThan(priority)
    this.#supply = machine.woken(this.#supply, overtakes)
    this.#step()
  }

  /** A poll found a stored delivery that is due then. A working lane finds it without being told. */
  noticed(dueAt: number): void {
    if (this.#phase.kind !== "working") this.wakeAt(dueAt)
  }

  wakeAt(dueAt: number): void {
    this.#supply = machine.dueAt(this.#supply, dueAt)
    this.#step()
  }

  handed(delivery: ClaimedDelivery): void {
    if (this.#phase.kind === "ended") return void this.#sender.giveBack([delivery])
    if (this.#supply.kind === "fetching") return void this.#arrivals.push(delivery)
    this.#sender.queue.add(delivery)
    if (mustGiveWay(this.#deps, this.#sender)) this.#leave("gives way")
    this.#step()
  }

  recalled(delivery: ClaimedDelivery): void {
    void this.#sender.giveBack([delivery])
    this.wake()
  }

  /** The endpoint changed, or the process stops: deliveries that did not start are given back and fetched again. */
  recall(): void {
    this.#giveBackQueue()
    // Waking every resting lane would be a burst of fetches that find nothing.
    if (this.#phase.kind !== "resting") this.wake()
  }

  /** The endpoint's agent came, went, or takes more. */
  reachChanged(): void {
    this.#step()
  }

  /** Another worker owns the lane. Requests in flight run to their end; the store refuses their outcomes. */
  lose(): void {
    this.#enter({ kind: "ended" })
    this.#takeQueue()
    this.#alarm.cancel()
    this.#session.close().catch(() => {})
  }

  lost(): void {
    if (this.#phase.kind === "ended") return
    this.lose()
    this.#listener.finished(machine.nextClaimAt(this.#supply, this.#deps.clock.now()))
  }

  /** Performs the next actions; called after every event. */
  readonly #step = (): void => {
    if (this.#phase.kind === "ended") return
    if (this.#deps.stopping() && this.#sender.queue.length > 0) this.#giveBackQueue()
    // At once, also from rest: the agent may be connected to another process, which waits for the lane.
    if (this.#isRead && this.#lane.reach === "absent") {
      if (this.#sender.queue.length + this.#arrivals.length > 0) this.#giveBackQueue()
      if (this.#isBusyOrResting()) return this.#leave("unreachable")
    }
    const blockedUntil = this.#sender.start()
    this.#tellPlace()
    const now = this.#deps.clock.now()
    this.#supply = machine.cameDue(this.#supply, now)
    const facts = factsOf(this.#deps, this.#lane, this.#session, this.#sender)
    const action = machine.decide(this.#phase, this.#supply, facts, now)
    switch (action.do) {
      case "fetch":
        return void this.#fetch()
      case "work":
        this.#enter({ kind: "working" })
        return this.#step()
      case "rest":
        this.#enter({ kind: "resting", since: now })
        return this.#step()
      case "close":
        return this.#leave(action.why)
      case "end":
        this.#enter({ kind: "ended" })
        this.#alarm.cancel()
        return this.#listener.finished(machine.nextClaimAt(this.#supply, now))
      case "wait":
        return this.#alarm.setBy(action.until, blockedUntil)
      default:
        return action satisfies never
    }
  }

  #isBusyOrResting(): boolean {
    return this.#phase.kind === "working" || this.#phase.kind === "resting"
  }

  #enter(phase: Phase): void {
    this.#phase = phase
    this.#tellPlace()
  }

  /** A lane whose retries wait for a slot, or all of whose deliveries wait for its agent, takes no place: it would keep other lanes from being claimed. */
  #tellPlace(): void {
    const { kind } = this.#phase
    const waitsForAgent = this.#lane.reach === "busy" && this.#sender.sending.size === 0
    const waits =
      kind === "working" &&
      (this.#sender.waitsForRetrySlot || waitsForAgent) &&
      (this.#rests || this.#deps.mayRest())
    const rests = kind === "resting" || waits
    if (rests === this.#rests) return
    this.#rests = rests
    this.#listener.rests(rests)
  }

  #leave(why: LeaveReason): void {
    if (!this.#isBusyOrResting()) return
    this.#enter({ kind: "closing", why })
    const closed = () => {
      if (this.#phase.kind === "closing") this.#enter({ kind: "leaving", why })
      this.#step()
    }
    // If closing fails, the store cannot be written to, and hands nothing over either.
    this.#session.close().then(closed, closed)
  }

  async #fetch(): Promise<void> {
    const { budget, clock, storeRetryMs } = this.#deps
    const { queue } = this.#sender
    const beside = this.#supply.kind === "overtaking"
    const wanted = this.#lane.ahead * 2
    const limit = budget.take(wanted)
    if (limit === 0) return this.#leave("gives way")
    this.#supply = machine.fetchStarted()
    const work = await readLane(
      this.#deps,
      this.claim,
      this.#lane,
      this.#session,
      this.#sender,
      wanted,
      limit,
    )
    const known: SupplyKnown =
      work === null ? { kind: "dry", until: clock.now() + storeRetryMs() } : this.#take(work, beside)
    this.#supply = machine.fetchEnded(this.#supply, known)
    for (const delivery of this.#arrivals.splice(0)) queue.add(delivery)
    const priority = this.#wokenFor
    this.#wokenFor = null
    if (priority !== null && queue.holdsLowerThan(priority)) this.#supply = machine.woken(this.#supply, true)
    this.#step()
  }

  /** Queues the fetched deliveries and returns the supply that is known after the fetch. */
  #take(
    { endpoint, gate, deliveries, nextDueAt, isRetryLimited }: LaneReading,
    beside: boolean,
  ): SupplyKnown {
    const now = this.#deps.clock.now()
    const before = this.#lane.target?.endpoint
    this.#lane.gate.load(gate)
    this.#lane.retarget(endpoint, this.#deps)
    this.#isRead = true
    // The lane became ordered: its queued deliveries go back and are fetched one by one.
    if (before?.ordered === false && this.#lane.isOrdered) this.#giveBackQueue()
    if (this.#supply.kind === "fetching" && this.#supply.recalled) {
      if (deliveries.length > 0) void this.#sender.giveBack(deliveries)
      return { kind: "dry", until: null }
    }
    for (const delivery of deliveries) this.#sender.queue.add(delivery)
    const closed = this.#lane.gate.closed(now)
    if (closed !== null) {
      void this.#sender.giveBack(this.#takeQueue())
      return { kind: "dry", until: closed.until }
    }
    if (deliveries.length + this.#sender.queue.length + this.#sender.sending.size === 0 && !isRetryLimited)
      this.#lane.gate.caughtUp()
    if (mustGiveWay(this.#deps, this.#sender)) this.#leave("gives way")
    const found = machine.foundBy(deliveries.length, nextDueAt, this.#lane.isOrdered, beside, now)
    const wereDeferred = this.#areRetriesDeferred
    this.#areRetriesDeferred = isRetryLimited
    if (!isRetryLimited) return found
    const deferred = this.#lane.gate.mayRetry(now, this.#sender.retriesInHand, this.#lane.limits)
    // The gate may have been reset since: the fetch asked by the budget from before.
    if (deferred === null) return machine.withMore(found)
    if (!wereDeferred) this.#deps.instruments.retriesDeferred()
    return machine.dueAt(found, deferred.until)
  }

  /** A success gave tokens back. */
  #mayFetchRetries(): boolean {
    if (!this.#areRetriesDeferred) return false
    const { gate, limits } = this.#lane
    return gate.mayRetry(this.#deps.clock.now(), this.#sender.retriesInHand, limits) === null
  }

  /** The returned deliveries are due in the store: a run that ends now must not say that its lane has nothing due. */
  #giveBackQueue(): void {
    const queue = this.#takeQueue()
    const isFetching = this.#supply.kind === "fetching"
    if (isFetching || queue.length > 0) this.#supply = machine.woken(machine.recalled(this.#supply))
    void this.#sender.giveBack(queue)
  }

  #takeQueue(): ClaimedDelivery[] {
    return [...this.#sender.queue.clear(), ...this.#arrivals.splice(0)]
  }
}

/**
 * One worker's time with one lane: fetch what is due, send it with the endpoint's concurrency, settle, fetch more, and give the
 * lane back. Every way out of an attempt ends in `settle`, so that a delivery is always in exactly one place.
 */
import type { Timer } from "../core/clock.ts"
import { describe } from "../core/errors.ts"
import type { LaneClaim } from "../schedule/schedule.ts"
import type {
  ClaimedDelivery,
  GivenBack,
  LaneWork,
  Priority,
  Settlement,
  SettleResult,
} from "../store/store.ts"
import { attempt, type Tried, toGivenBack, toSettlement } from "./attempt.ts"
import type { Crew } from "./crew.ts"
import { Ending, type EndingListener } from "./ending.ts"
import { higherOf, LaneQueue, RETRY_SHARE } from "./lane-queue.ts"
import type { LaneState } from "./lane-state.ts"
import type { Slot } from "./slots.ts"

/** After this many a lane gives way, if others wait for its place. */
const QUANTUM = 100
const STORE_RETRY_MS = 500
/** A lease that could not be renewed in time may yet be. */
const LEASE_RETRY_MS = 500
/** How many are handed over ahead of their turn, in times of what may be under way at most: a fetch costs more than they do. */
const MOST_HANDED = 4
/** To an endpoint that takes all that may be under way: what it is sent faster than it can take it is soon gone. */
const MOST_HANDED_IF_QUICK = 64
/** How long an open lane is kept with nothing to do: what comes meanwhile is sent without having been asked for, a commit sooner. */
const REST_MS = 10_000

/** What a run tells the engine. */
interface RunListener {
  /** It has nothing to do and takes up no place, or it has again. */
  rests(rests: boolean): void
  finished(nextDueAt: number | null): void
}

export class LaneRun implements EndingListener {
  readonly claim: LaneClaim
  readonly #crew: Crew
  readonly #lane: LaneState
  readonly #listener: RunListener
  readonly #queue = new LaneQueue()
  /** Fetched, and neither settled nor given back. One that was settled may be fetched again before we are told that it was. */
  readonly #inHand = new Set<ClaimedDelivery>()
  /** The numbers of the deliveries whose requests are in flight. */
  readonly #sending = new Set<number>()
  #unsettled = 0
  #started = 0
  #fetching = false
  #wokenMeanwhile = false
  /** The highest of what it was woken for meanwhile. */
  #priorityMeanwhile: Priority | null = null
  /** Something came due, or goes before what is in hand: it is fetched beside that. */
  #comesDue = false
  /** Goes up when what was fetched before must not be sent any more. */
  #round = 0
  /** All that was due is fetched; the lane is looked at again at `nextDueAt`, or when it is woken. */
  #drained = false
  /** No more is fetched: others wait for this run's place. */
  #leaving = false
  /** The store hands over what it accepts for the lane, until it is closed. */
  #open = false
  #closing = false
  /** What is handed over goes back: something is not as it was when the lane was opened. */
  #refusing = false
  #rests = false
  #restsSince = 0
  #over = false
  #nextDueAt: number | null = null
  #dueTimer: Timer | null = null
  /** What it is set for. */
  #dueTimerAt: number | null = null
  #startTimer: Timer | null = null
  #restTimer: Timer | null = null

  constructor(crew: Crew, claim: LaneClaim, lane: LaneState, listener: RunListener) {
    this.#crew = crew
    this.claim = claim
    this.#lane = lane
    this.#listener = listener
  }

  get sending(): ReadonlySet<number> {
    return this.#sending
  }

  start(): void {
    void this.#fetch()
  }

  /** Something is due, or may be: fetched beside what is under way, so that a slow request holds up no other. */
  wake(priority?: Priority): void {
    if (this.#leaving) return this.#comeBackAt(this.#crew.clock.now())
    this.#drained = false
    // The fetch that is under way may have looked before this was committed.
    if (this.#fetching) this.#wokenMeanwhile = true
    if (priority !== undefined) this.#isWokenFor(priority)
    this.#step()
  }

  /** One that goes before something in hand does not wait until that is sent. */
  #isWokenFor(priority: Priority): void {
    if (this.#queue.holdsLowerThan(priority)) this.#comesDue = true
    else if (this.#fetching) this.#priorityMeanwhile = higherOf(priority, this.#priorityMeanwhile)
  }

  /** Something will be due: looked at then, also while requests are under way. */
  wakeAt(dueAt: number): void {
    this.#comeBackAt(dueAt)
    this.#step()
  }

  /** Accepted a moment ago, and claimed for us in the same transaction. */
  hand(delivery: ClaimedDelivery): void {
    this.#inHand.add(delivery)
    if (this.#refusing) {
      void this.#putBack([delivery])
      // The fetch that is under way may have looked before it was back.
      return this.wake()
    }
    this.#queue.add(delivery)
    if (this.#mustGiveWay()) this.#leaving = true
    this.#step()
  }

  /** The endpoint changed, or the process stops: what is not under way goes back, to be fetched as things are then. */
  recall(): void {
    if (this.#rests) {
      // Whoever has something for a lane that rests wakes it; what is on its way was accepted before the change.
      this.#refusing = true
      return void this.#close()
    }
    this.#giveBackWaiting()
    this.wake()
  }

  /** The lane is somebody else's now. What is under way comes to its end, and the store refuses to write it down. */
  lose(): void {
    this.#over = true
    this.#queue.clear()
    this.#rest(false)
    this.#cancelTimers()
  }

  #cancelTimers(): void {
    this.#dueTimer?.cancel()
    this.#startTimer?.cancel()
    this.#restTimer?.cancel()
  }

  /** Does whatever can be done now; called after every change. */
  readonly #step = (): void => {
    if (this.#over) return
    while (this.#startNext()) {}
    if (this.#open && (this.#leaving || this.#crew.stopping())) void this.#close()
    if (this.#wantsMore()) void this.#fetch()
    else if (this.#isIdle() && !this.#open) return this.#finish()
    else this.#armDueTimer()
    if (!this.#over) this.#rest(this.#isIdle())
  }

  #wantsMore(): boolean {
    // A fetch that went beside the close might open the lane anew, and the close would be believed.
    if (this.#drained || this.#leaving || this.#fetching || this.#closing || this.#crew.stopping())
      return false
    // The next of an ordered line is asked for when the one before is on its way into the store.
    if (this.#isOrdered()) return this.#queue.length + this.#sending.size === 0
    return this.#queue.length < this.#ahead() || (this.#comesDue && this.#queue.places < this.#mostWaiting())
  }

  /** How many are kept at hand. */
  #ahead(): number {
    return this.#lane.ahead(this.#allowed())
  }

  /** How many places there are for what is handed over. */
  #mostHanded(): number {
    if (this.#lane.target === null) return MOST_HANDED
    const most = this.#mostAtOnce()
    const isQuick = most > 1 && this.#allowed() === most && !this.#crew.othersWait()
    return most * (isQuick ? MOST_HANDED_IF_QUICK : MOST_HANDED)
  }

  /** With so much in hand nothing is fetched beside it: what comes due waits for its turn in the store. */
  #mostWaiting(): number {
    return this.#mostHanded() + this.#ahead()
  }

  #isOrdered(): boolean {
    return this.#lane.target?.endpoint.ordered ?? false
  }

  /** While requests are under way, a retry that comes due does not wait for them. */
  #armDueTimer(): void {
    const dueAt = this.#leaving || this.#fetching || this.#crew.stopping() ? null : this.#nextDueAt
    // There are several steps for each delivery, and a lane with a retry has a due time at each of them.
    if (dueAt === this.#dueTimerAt) return
    this.#dueTimer?.cancel()
    this.#dueTimer = null
    this.#dueTimerAt = dueAt
    if (dueAt === null) return
    this.#dueTimer = this.#crew.clock.setTimer(Math.max(0, dueAt - this.#crew.clock.now()), () => {
      this.#dueTimerAt = null
      this.#nextDueAt = null
      this.#comesDue = true
      this.wake()
    })
  }

  #isIdle(): boolean {
    const idle = this.#queue.length === 0 && this.#sending.size === 0 && this.#unsettled === 0
    return idle && !this.#fetching && !this.#closing
  }

  #rest(rests: boolean): void {
    if (rests === this.#rests) return
    if (rests && !this.#crew.mayRest()) return void this.#close()
    this.#rests = rests
    if (rests) {
      this.#restsSince = this.#crew.clock.now()
      this.#restTimer ??= this.#crew.clock.setTimer(REST_MS, this.#hasRested)
    }
    this.#listener.rests(rests)
  }

  /** The timer goes on while the lane works: one that is sent something now and then would set a new one for each. */
  readonly #hasRested = (): void => {
    this.#restTimer = null
    if (!this.#rests) return
    const leftMs = this.#restsSince + REST_MS - this.#crew.clock.now()
    if (leftMs > 0) this.#restTimer = this.#crew.clock.setTimer(leftMs, this.#hasRested)
    else void this.#close()
  }

  async #close(): Promise<void> {
    if (this.#closing) return
    this.#closing = true
    this.#rest(false)
    this.#crew.settler.flush()
    // A store that cannot be written to closes every lane by itself.
    await this.#crew.store.closeLane(this.claim.endpointId).catch(() => {})
    this.#open = false
    this.#closing = false
    this.#step()
  }

  #allowed(): number {
    return this.#isOrdered() ? 1 : this.#lane.concurrency.allowed(this.#mostAtOnce())
  }

  #mostAtOnce(): number {
    return this.#lane.target?.endpoint.concurrency ?? this.#crew.laneConcurrency
  }

  async #fetch(): Promise<void> {
    this.#fetching = true
    const { store, clock, budget, settler } = this.#crew
    // Behind what was settled before: the store then knows of a hold, and fetches a line's next without a round trip between.
    settler.flush()
    const wanted = this.#ahead() * 2
    const limit = budget.take(wanted)
    const hadWork = this.#queue.length + this.#sending.size > 0
    const beside = this.#comesDue
    this.#comesDue = false
    this.#nextDueAt = null
    const round = this.#round
    let found = 0
    try {
      if (limit === 0) return this.#drainUntil(clock.now())
      const [work] = await store.fetch(
        [
          {
            ...this.#lane.nextShare(limit, RETRY_SHARE),
            token: this.claim.token,
            inHand: [...this.#inHand].map(({ seq }) => seq),
            starting: this.#allowed() - this.#sending.size - this.#queue.length,
            open: budget.isLimited || this.#isOrdered() ? 0 : this.#mostHanded(),
          },
        ],
        clock.now(),
        clock.wallNow(),
      )
      this.#crew.uptime.reached(clock.now())
      found = work!.deliveries.length
      for (const delivery of work!.deliveries) this.#inHand.add(delivery)
      if (work!.lost) return this.#finish()
      this.#open = work!.open ?? false
      this.#lane.fetched(payloadBytes(work!), hadWork && found === wanted && this.#queue.length === 0)
      if (round === this.#round) this.#take(work!, beside)
      else void this.#putBack(work!.deliveries)
    } catch (error) {
      this.#crew.uptime.failed()
      this.#crew.logger.warn(
        { err: error, endpoint_id: this.claim.endpointId },
        "Due deliveries could not be read; trying again",
      )
      this.#drainUntil(clock.now() + STORE_RETRY_MS * (1 + this.#crew.random()))
    } finally {
      budget.giveBack(limit - found)
      this.#fetching = false
      if (this.#wokenMeanwhile) this.#drained = false
      this.#wokenMeanwhile = false
      const priority = this.#priorityMeanwhile
      this.#priorityMeanwhile = null
      if (priority !== null) this.#isWokenFor(priority)
      this.#step()
    }
  }

  #take(work: LaneWork, beside: boolean): void {
    this.#refusing = false
    for (const delivery of work.deliveries) this.#queue.add(delivery)
    this.#lane.deleted = work.deleted
    try {
      if (work.endpoint !== null) this.#lane.target = this.#crew.target(work.endpoint)
    } catch (error) {
      // Its secrets or policy cannot be read: each of its deliveries is set back as a fault of our own.
      this.#lane.target = null
      this.#lane.targetError = describe(error)
    }
    if (work.held !== null) {
      this.#giveBackWaiting()
      return this.#drainUntil(work.held.until)
    }
    if (this.#mustGiveWay()) {
      this.#leaving = true
      return this.#comeBackAt(work.nextDueAt)
    }
    // A line is asked again after each settle: what comes next may be due by then.
    const more = this.#isOrdered()
      ? work.deliveries.length > 0
      : work.nextDueAt !== null && work.nextDueAt <= this.#crew.clock.now()
    if (!more || work.deliveries.length === 0) this.#drainUntil(work.nextDueAt)
    // What is left came due as well, and does not wait for all that is in hand.
    else if (beside) this.#comesDue = true
  }

  #mustGiveWay(): boolean {
    return this.#crew.budget.isLimited || (this.#started >= QUANTUM && this.#crew.othersWait())
  }

  #drainUntil(nextDueAt: number | null): void {
    this.#drained = true
    this.#comeBackAt(nextDueAt)
  }

  #comeBackAt(dueAt: number | null): void {
    if (dueAt !== null) this.#nextDueAt = Math.min(this.#nextDueAt ?? Number.POSITIVE_INFINITY, dueAt)
  }

  /** False when there is none, or it has to wait: for a place, for the rate limit, or because the lane has enough under way. */
  #startNext(): boolean {
    const { head } = this.#queue
    if (head === undefined) return false
    if (this.#crew.stopping()) {
      this.#giveBackWaiting()
      return false
    }
    if (this.#sending.size >= this.#allowed()) return false
    if (!this.#crew.holds()) return this.#tryAgainIn(LEASE_RETRY_MS)
    const slot = this.#crew.slots.take(this.#sending.size, head.stalls, this.#step)
    if (slot === null) return false
    const waitMs = this.#lane.rateWait(this.#crew.clock.now())
    if (waitMs > 0) {
      this.#crew.slots.release(slot)
      return this.#tryAgainIn(waitMs)
    }
    const delivery = this.#queue.shift()!
    this.#sending.add(delivery.seq)
    this.#started++
    void this.#deliver(delivery, slot)
    return true
  }

  #tryAgainIn(waitMs: number): false {
    this.#startTimer?.cancel()
    this.#startTimer = this.#crew.clock.setTimer(waitMs, this.#step)
    return false
  }

  /** Claimed → sent → settled → reported. */
  async #deliver(delivery: ClaimedDelivery, slot: Slot): Promise<void> {
    const tried = await attempt(this.#crew, this.#lane, delivery)
    this.#sending.delete(delivery.seq)
    const now = this.#crew.clock.now()
    if (tried.outcome.kind === "interrupted") {
      this.#drainUntil(now)
      try {
        return await this.#putBack([delivery], tried)
      } finally {
        this.#crew.slots.release(slot)
      }
    }
    this.#unsettled++
    try {
      this.#learn(tried)
      const settlement = this.#settlementOf(delivery, tried)
      this.#crew.settler.settle(new Ending(this, delivery, tried, slot, settlement, now))
    } catch (error) {
      return this.#couldNotEnd(delivery, slot, error)
    }
    this.#step()
  }

  /** The settler's word. */
  written(ending: Ending, result: SettleResult): void {
    try {
      this.#report(ending, result)
    } finally {
      this.#ended(ending.delivery, ending.slot)
    }
  }

  refused({ delivery, slot }: Ending, error: unknown): void {
    this.#couldNotEnd(delivery, slot, error)
  }

  #couldNotEnd(delivery: ClaimedDelivery, slot: Slot, error: unknown): void {
    this.#crew.logger.error(
      { err: error, delivery_id: delivery.id },
      "An outcome could not be written; the delivery will be repeated",
    )
    this.#leaving = true
    this.#ended(delivery, slot)
  }

  #ended(delivery: ClaimedDelivery, slot: Slot): void {
    this.#unsettled--
    this.#inHand.delete(delivery)
    // A line whose head was under way when it was asked found nothing; now there may be a next.
    if (this.#isOrdered()) this.#drained = false
    try {
      this.#step()
    } finally {
      this.#crew.slots.release(slot)
    }
  }

  #learn({ outcome, startedAt }: Tried): void {
    if (outcome.kind === "failure") return this.#lane.concurrency.failed()
    if (outcome.kind !== "response" || outcome.status >= 300) return
    const { clock, load } = this.#crew
    const most = load.mostAfter(clock.now() - startedAt, this.#mostAtOnce())
    this.#lane.concurrency.succeeded(this.#sending.size + 1, most)
  }

  #settlementOf(delivery: ClaimedDelivery, tried: Tried): Settlement {
    const policy = (this.#lane.target ?? tried.target)?.policy
    const settlement = toSettlement(this.#crew, this.claim, delivery, tried, policy)
    const { disableEndpoint, holdLaneUntil } = settlement.change
    // Before it is written: the endpoint has just said that it wants nothing now.
    if (disableEndpoint || holdLaneUntil !== null) this.#holdBack(holdLaneUntil)
    return settlement
  }

  #report({ delivery, tried, settlement, settledAt }: Ending, result: SettleResult): void {
    const { change, attempt } = settlement
    const { endpointId, appId } = this.claim
    this.#crew.load.wrote(this.#crew.clock.now() - settledAt)
    this.#comeBackAt(result === "applied" ? change.nextRetryAt : this.#crew.clock.now())
    const detail = tried.result?.detail ?? null
    const settled = { delivery, endpointId, appId, change, attempt, detail }
    if (result === "applied") this.#crew.reporter.settled(settled, settledAt)
    else if (result === "superseded") this.#crew.reporter.late(settled, settledAt)
    if (change.disableEndpoint) this.#crew.transport.forget(endpointId)
  }

  #holdBack(until: number | null): void {
    this.#giveBackWaiting()
    this.#drained = true
    this.#comesDue = false
    this.#nextDueAt = until
  }

  #giveBackWaiting(): void {
    // What a fetch brings that is under way now was read before, and goes back as well.
    this.#round++
    this.#refusing = true
    const waiting = this.#queue.clear()
    if (waiting.length > 0) void this.#putBack(waiting)
  }

  async #putBack(deliveries: readonly ClaimedDelivery[], tried: Tried | null = null): Promise<void> {
    const claims = deliveries.map((one) => toGivenBack(this.#crew, this.claim, one, tried))
    this.#unsettled++
    let late = false
    while (!(await this.#wasPutBack(claims)) && !this.#over && !this.#crew.stopping()) {
      late = true
      const waitMs = STORE_RETRY_MS * (1 + this.#crew.random())
      await new Promise<void>((resolve) => this.#crew.clock.setTimer(waitMs, resolve))
    }
    this.#unsettled--
    for (const delivery of deliveries) this.#inHand.delete(delivery)
    // Whoever looked for it meanwhile did not find it.
    if (late) this.#comeBackAt(this.#crew.clock.now())
    this.#step()
  }

  async #wasPutBack(claims: readonly GivenBack[]): Promise<boolean> {
    try {
      this.#crew.settler.flush()
      await this.#crew.store.giveBack(claims)
      return true
    } catch (error) {
      this.#crew.logger.warn({ err: error }, "Unsent deliveries could not be given back; trying again")
      return false
    }
  }

  #finish(): void {
    if (this.#over) return
    this.#over = true
    if (this.#comesDue) this.#comeBackAt(this.#crew.clock.now())
    this.#rest(false)
    this.#cancelTimers()
    this.#listener.finished(this.#nextDueAt)
  }
}

function payloadBytes({ deliveries }: LaneWork): number {
  return deliveries.reduce((bytes, { payload }) => bytes + (payload?.length ?? 0), 0)
}

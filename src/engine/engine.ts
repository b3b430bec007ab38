/**
 * The engine: claims due lanes, runs them, and keeps watch. What waits is in the store; the engine holds nothing that a crash
 * could lose. Work is woken at once; the poll is a net under it, which also finds what others changed in the store.
 */
import type { Random } from "../core/backoff.ts"
import { type Clock, type Moment, momentOf, type Timer, wasSet } from "../core/clock.ts"
import type { Ids } from "../core/ids.ts"
import type { Policy } from "../core/policy.ts"
import type { Vault } from "../core/vault.ts"
import type { EventBus } from "../observe/events.ts"
import type { Logger } from "../observe/log.ts"
import { Trouble, type TroubleTexts } from "../observe/trouble.ts"
import type { LaneClaim, Schedule } from "../schedule/schedule.ts"
import type { ClaimedDelivery, Store, Task } from "../store/store.ts"
import type { Transport } from "../transport/transport.ts"
import { type Crew, PollBudget, Uptime } from "./crew.ts"
import type { Woken } from "./handed.ts"
import { LaneRun } from "./lane-run.ts"
import { LaneState } from "./lane-state.ts"
import { ApplicationRates } from "./limits.ts"
import { Load } from "./load.ts"
import { Maintenance } from "./maintenance.ts"
import { OAuthTokens } from "./oauth.ts"
import { Reporter } from "./reporter.ts"
import { Settler } from "./settler.ts"
import { Slots } from "./slots.ts"
import { Target } from "./target.ts"
import { TaskRunner } from "./tasks.ts"

export interface EngineOptions {
  readonly pollIntervalMs: number
  readonly maxPerPoll: number | null
  readonly maintenanceIntervalMs: number
  readonly maxInFlight: number
  readonly laneConcurrency: number
  readonly userAgent: string
}

export interface EngineParts {
  readonly store: Store
  readonly schedule: Schedule
  readonly transport: Transport
  readonly clock: Clock
  readonly random: Random
  readonly ids: Ids
  readonly vault: Vault
  readonly bus: EventBus
  readonly logger: Logger
  readonly defaultPolicy: Policy
  taskFinished(task: Task): void
}

/** How soon a schedule that could not be reached is asked again. */
const CLAIM_RETRY_MS = 500
const CLAIM_TEXTS = {
  begins: "Lanes could not be claimed; trying again",
  ends: "Lanes can be claimed again",
}
const POLL_TEXTS = {
  begins: "The poll could not read the store; trying again",
  ends: "The poll can read the store again",
}
/** How many lanes' states are kept while they are not worked on. */
const MOST_IDLE_LANES = 10_000
/** How many are kept open with nothing to do. */
const MOST_RESTING_LANES = 10_000

export class Engine {
  readonly #parts: EngineParts
  readonly #options: EngineOptions
  readonly #crew: Crew
  readonly #runs = new Map<string, LaneRun>()
  readonly #lanes = new Map<string, LaneState>()
  readonly #appRates = new ApplicationRates()
  readonly #maintenance: Maintenance
  readonly #claimTrouble: Trouble
  readonly #pollTrouble: Trouble
  readonly tasks: TaskRunner
  readonly transport: Transport
  #state: "new" | "running" | "stopping" | "stopped" = "new"
  #pumping = false
  #pumpAgain = false
  #alarm: Timer | null = null
  #pollTimer: Timer | null = null
  #polling: Promise<void> = Promise.resolve()
  #looks = 0
  /** Runs that have nothing to do and keep their lane for what may come. */
  #resting = 0
  #sweepDue = true
  /** When a poll last looked at the clocks. */
  #looked: (Moment & { readonly elapsedMs: number }) | null = null
  #onIdle: (() => void) | null = null

  constructor(parts: EngineParts, options: EngineOptions) {
    const { store, clock, random, logger, schedule, vault, defaultPolicy } = parts
    this.#parts = parts
    this.#options = options
    this.transport = parts.transport
    const settler = new Settler(store, clock, random, logger)
    const reporter = new Reporter(parts.bus, logger)
    const slots = new Slots(options.maxInFlight, clock)
    this.#crew = {
      ...parts,
      tokens: new OAuthTokens(parts.transport, clock),
      settler,
      reporter,
      slots,
      load: new Load(clock, slots, () => this.#working()),
      budget: new PollBudget(options.maxPerPoll),
      uptime: new Uptime(),
      laneConcurrency: options.laneConcurrency,
      target: (endpoint) => new Target(endpoint, vault, defaultPolicy, options.userAgent),
      stopping: () => this.#state !== "running",
      holds: () => schedule.holds(),
      mayRest: () => this.#resting < MOST_RESTING_LANES,
      othersWait: () => this.#working() >= options.maxInFlight && schedule.hasWaiting(clock.now()),
    }
    const trouble = (texts: TroubleTexts) => new Trouble(logger, texts, {}, () => clock.elapsedMs())
    this.#claimTrouble = trouble(CLAIM_TEXTS)
    this.#pollTrouble = trouble(POLL_TEXTS)
    this.#maintenance = new Maintenance(store, clock, logger, options.maintenanceIntervalMs)
    this.tasks = new TaskRunner({ ...parts, reporter, wake: (lanes) => this.wake(lanes) })
  }

  /** Finds what waits, without writing a row, and begins with the first poll at once. */
  async start(): Promise<void> {
    await this.#parts.schedule.start({ due: () => void this.#pump(), lost: () => this.#lose() })
    this.#state = "running"
    this.#poll()
    this.#maintenance.start()
    this.tasks.start()
  }

  /** Something is due in these lanes: looked at at once. */
  wake(lanes: readonly Woken[]): void {
    const now = this.#parts.clock.now()
    const asking = lanes.filter((woken) => {
      const { endpointId, delivery, token } = woken
      if (delivery === undefined) return true
      const run = this.#runs.get(endpointId)
      // A run that was told of as open is there until it has closed the lane, unless it was lost.
      if (run?.claim.token === token) run!.hand(delivery)
      else void this.#returnHanded(woken, delivery)
      return false
    })
    this.#parts.schedule.wake(asking)
    let unclaimed = false
    for (const { endpointId, dueAt, priority } of asking) {
      const run = this.#runs.get(endpointId)
      if (run === undefined) unclaimed = true
      else if (dueAt <= now) run.wake(priority)
      else run.wakeAt(dueAt)
    }
    // A lane that is being worked on needs no claim: on a busy endpoint every send would ask for one.
    if (unclaimed) void this.#pump()
  }

  /** Nobody is here for it any more: whoever has the lane next finds it. */
  async #returnHanded({ token, ...lane }: Woken, { seq, id, messageId }: ClaimedDelivery): Promise<void> {
    const { store, logger, clock } = this.#parts
    const claim = { seq, deliveryId: id, messageId, endpointId: lane.endpointId, token: token! }
    try {
      await store.giveBack([{ ...claim, attempt: null }])
      this.wake([{ endpointId: lane.endpointId, appId: lane.appId, dueAt: clock.now() }])
    } catch (error) {
      logger.warn(
        { err: error, delivery_id: id },
        "A delivery could not be given back; its lane's next owner finds it",
      )
    }
  }

  /** The numbers of the endpoint's deliveries whose requests are in flight from here; undefined when this process does not have its lane. */
  sending(endpointId: string): ReadonlySet<number> | undefined {
    return this.#runs.get(endpointId)?.sending
  }

  /** Another process says that something may be due. */
  hint(): void {
    this.#parts.schedule.hint()
  }

  /** The endpoint was changed: what is not under way is fetched anew, as it is now. */
  endpointChanged(endpointId: string, appId: string): void {
    this.#parts.transport.forget(endpointId)
    this.#crew.tokens.forget(endpointId)
    this.#runs.get(endpointId)?.recall()
    this.wake([{ endpointId, appId, dueAt: this.#parts.clock.now() }])
  }

  /** Deliveries of these lanes were called off: what waits in a lane's hands is put back and looked at again. */
  recall(which: { readonly endpointId?: string; readonly appId?: string }): void {
    for (const run of this.#runs.values()) {
      if (run.claim.endpointId === which.endpointId || run.claim.appId === which.appId) run.recall()
    }
  }

  /** Resolves when nothing is under way, claimed or being looked for; for tests and for a graceful stop. */
  whenIdle(): Promise<void> {
    if (this.#isIdle()) return Promise.resolve()
    return new Promise((resolve) => {
      const before = this.#onIdle
      this.#onIdle = () => {
        before?.()
        resolve()
      }
    })
  }

  /** What the schedule has to do without, in a sentence; null when nothing is missing. */
  get scheduleProblem(): string | null {
    return this.#parts.schedule.problem()
  }

  /** One poll now; resolves when what it found is woken. */
  pollOnce(): Promise<void> {
    this.#looks++
    this.#polling = this.#polling
      .then(() => this.#look())
      .finally(() => {
        this.#looks--
        this.#tellIfIdle()
      })
    return this.#polling
  }

  /** Whether a claim or a poll is under way; for tests. */
  get isLooking(): boolean {
    return this.#pumping || this.#looks > 0
  }

  maintainOnce(): Promise<void> {
    return this.#maintenance.runOnce()
  }

  #poll(): void {
    if (this.#state !== "running") return
    this.#pollTimer = this.#parts.clock.setTimer(this.#options.pollIntervalMs, () => this.#poll())
    // One at a time, and one more behind it, which sees what the first came too early for; others that were missed are that one.
    if (this.#looks < 2) void this.pollOnce()
  }

  async #look(): Promise<void> {
    if (this.#state !== "running") return
    try {
      this.#crew.budget.refill()
      void this.#pump()
      // Kept until the sweep is through: one that fails is made again at the next poll.
      this.#sweepDue = this.#clockWasSet() || (await this.#parts.store.changedOutside()) || this.#sweepDue
      if (this.#sweepDue) for (const run of this.#runs.values()) run.recall()
      await this.#parts.schedule.sweep(this.#sweepDue, momentOf(this.#parts.clock))
      this.#sweepDue = false
      const { schedule, clock } = this.#parts
      if (schedule.hasWaiting(clock.now())) void this.#pump()
      else if (!this.#pumping) this.#arm(schedule.nextDueAt())
      // Some that another process began, or that somebody's crash left in the middle.
      this.tasks.wake()
      this.#crew.slots.offer()
      this.#pollTrouble.passed()
    } catch (error) {
      if (this.#state === "running") this.#pollTrouble.failed(error as Error)
    }
  }

  /** Dates are then due earlier or later than the lanes were told. */
  #clockWasSet(): boolean {
    const { clock } = this.#parts
    const before = this.#looked
    this.#looked = { ...momentOf(clock), elapsedMs: clock.elapsedMs() }
    return before !== null && wasSet(before, this.#looked, this.#looked.elapsedMs - before.elapsedMs)
  }

  async #pump(): Promise<void> {
    if (this.#pumping) {
      this.#pumpAgain = true
      return
    }
    this.#pumping = true
    try {
      do {
        this.#pumpAgain = false
        await this.#claimDue()
      } while (this.#pumpAgain)
      this.#pumping = false
      this.#arm(this.#parts.schedule.nextDueAt())
      this.#tellIfIdle()
    } catch (error) {
      this.#pumping = false
      this.#crew.uptime.failed()
      this.#tellIfIdle()
      if (this.#state !== "running") return
      this.#claimTrouble.failed(error as Error)
      this.#arm(this.#parts.clock.now() + CLAIM_RETRY_MS * (1 + this.#parts.random()))
    }
  }

  async #claimDue(): Promise<void> {
    const { schedule, clock } = this.#parts
    if (this.#state !== "running") return
    // Without room too: what is given back goes with the claim, and so does the news of lanes that we have.
    const room = this.#crew.budget.isSpent ? 0 : Math.max(0, this.#options.maxInFlight - this.#working())
    const claims = await schedule.claim(room, clock.now())
    this.#crew.uptime.reached(clock.now())
    this.#claimTrouble.passed()
    // Claimed while the process began to stop: given back with everything else.
    if (this.#state === "running") for (const claim of claims) this.#run(claim)
  }

  #run(claim: LaneClaim): void {
    const { endpointId } = claim
    const current = this.#runs.get(endpointId)
    if (current?.claim.token === claim.token) return current.wake()
    current?.lose()
    const lane = this.#lanes.get(endpointId) ?? new LaneState(endpointId, this.#appRates)
    // Put last: the map's order is then that of use, and the first are the ones to forget.
    this.#lanes.delete(endpointId)
    this.#lanes.set(endpointId, lane)
    const run = new LaneRun(this.#crew, claim, lane, {
      rests: (rests) => {
        const wasFull = this.#working() >= this.#options.maxInFlight
        this.#resting += rests ? 1 : -1
        // The place that it gives up may be the one that another lane waits for.
        if (rests && wasFull) void this.#pump()
        this.#tellIfIdle()
      },
      finished: (nextDueAt) => this.#finished(claim, nextDueAt),
    })
    this.#runs.set(endpointId, run)
    run.start()
  }

  #finished(claim: LaneClaim, nextDueAt: number | null): void {
    this.#runs.delete(claim.endpointId)
    // Not waited for: it goes with the claim that follows.
    void this.#parts.schedule.release(claim, nextDueAt, this.#parts.clock.now())
    this.#forgetIdleLanes()
    void this.#pump()
    this.#tellIfIdle()
  }

  /** The lease ran out while this process was paused or cut off: the lanes are somebody else's, and so is what they had in hand. */
  #lose(): void {
    this.#parts.logger.warn({ lanes: this.#runs.size }, "The lease ran out; other workers have taken over")
    for (const run of this.#runs.values()) run.lose()
    this.#runs.clear()
    void this.#pump()
    this.#tellIfIdle()
  }

  #isIdle(): boolean {
    return this.#working() === 0 && !this.isLooking
  }

  #working(): number {
    return this.#runs.size - this.#resting
  }

  #tellIfIdle(): void {
    if (!this.#isIdle()) return
    const onIdle = this.#onIdle
    this.#onIdle = null
    onIdle?.()
  }

  #forgetIdleLanes(): void {
    if (this.#lanes.size <= MOST_IDLE_LANES + this.#runs.size) return
    for (const endpointId of this.#lanes.keys()) {
      if (this.#runs.has(endpointId)) continue
      this.#lanes.delete(endpointId)
      return
    }
  }

  /** Sets the alarm for the next lane whose time comes. */
  #arm(dueAt: number | null): void {
    this.#alarm?.cancel()
    this.#alarm = null
    if (
      dueAt === null ||
      this.#state !== "running" ||
      this.#crew.budget.isSpent ||
      this.#working() >= this.#options.maxInFlight
    )
      return
    const { clock } = this.#parts
    this.#alarm = clock.setTimer(Math.max(0, dueAt - clock.now()), () => void this.#pump())
  }

  /** Claims nothing more, lets what is under way finish until the deadline, then cuts it off; what is cut off stays due. */
  async stop(deadlineMs: number): Promise<void> {
    if (this.#state !== "running") return
    this.#state = "stopping"
    this.#alarm?.cancel()
    this.#pollTimer?.cancel()
    this.#maintenance.stop()
    const deadline = this.#parts.clock.setTimer(deadlineMs, () => {
      this.#cutOff({ deadline_ms: deadlineMs })
      this.#crew.settler.giveUp()
    })
    for (const run of this.#runs.values()) run.recall()
    await Promise.all([this.whenIdle(), this.tasks.stop(), this.#polling])
    await this.#parts.schedule.stop()
    deadline.cancel()
    this.#state = "stopped"
  }

  /** The store is lost: nothing more is started or written. */
  abandon(): void {
    this.#state = "stopped"
    this.#alarm?.cancel()
    this.#pollTimer?.cancel()
    this.#maintenance.stop()
    void this.tasks.stop()
    this.#parts.schedule.abandon()
    this.#cutOff({})
  }

  #cutOff(fields: object): void {
    const requests = this.#parts.transport.interrupt()
    if (requests === 0) return
    const text = "Requests under way were cut off; their deliveries stay due and are sent again"
    this.#parts.logger.warn({ requests, ...fields }, text)
  }
}

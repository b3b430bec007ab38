/** The engine: claims due lanes, runs them, polls, and maintains the store. It holds nothing that a crash could lose. */
import { Backoff } from "../core/backoff.ts"
import { Trouble, type TroubleTexts } from "../observe/trouble.ts"
import type { LaneWake, Priority } from "../store/store.ts"
import type { Transport } from "../transport/transport.ts"
import { upSince } from "./attempt.ts"
import { Claimer } from "./claiming.ts"
import type { EngineOptions, EngineParts } from "./engine-parts.ts"
import type { LaneDependencies } from "./lane-dependencies.ts"
import { LaneTable } from "./lane-table.ts"
import { Load } from "./load.ts"
import { Maintenance } from "./maintenance.ts"
import { OAuthTokens } from "./oauth.ts"
import { closeBreakers, outageEvent } from "./outage-effects.ts"
import { OwnOutage } from "./own-outage.ts"
import { PollBudget } from "./poll-budget.ts"
import { Poller } from "./polling.ts"
import { RelayExpiry } from "./relay-expiry.ts"
import { SettlementQueue } from "./settlement-queue.ts"
import { Slots } from "./slots.ts"
import { Target } from "./target.ts"
import { TaskRunner } from "./tasks.ts"
import { Uptime } from "./uptime.ts"

/** A lane with deliveries to send; `priority` is that of the message just accepted for it. */
export interface Woken extends LaneWake {
  readonly priority?: Priority
}

/** The delay before a failed call to the store or the schedule is repeated; jitter takes away up to half. */
const RETRY_MS = 1000
const CLAIM_TEXTS = {
  begins: "Lanes could not be claimed; trying again",
  ends: "Lanes can be claimed again",
}
const POLL_TEXTS = {
  begins: "The poll could not read the store; trying again",
  ends: "The poll can read the store again",
}

export class Engine {
  readonly #parts: EngineParts
  readonly #deps: LaneDependencies
  readonly #lanes: LaneTable
  readonly #claimer: Claimer
  readonly #poller: Poller
  readonly #maintenance: Maintenance
  readonly #relayExpiry: RelayExpiry
  readonly tasks: TaskRunner
  readonly transport: Transport
  #state: "new" | "running" | "stopping" | "stopped" = "new"
  #onIdle: (() => void)[] = []
  #endpoints: readonly string[] = []

  constructor(parts: EngineParts, options: EngineOptions) {
    const { store, clock, random, logger, schedule, vault, defaultPolicy, transport } = parts
    this.#parts = parts
    this.transport = transport
    this.#lanes = new LaneTable(store, options.maxInFlight, options.laneConcurrency, {
      placeFree: () => void this.#claimer.run(),
      // Not awaited: the release is written with the next claim.
      released: (claim, nextDueAt) => void schedule.release(claim, nextDueAt, clock.now()),
      changed: () => this.#tellIfIdle(),
    })
    const backoff = new Backoff({ firstMs: RETRY_MS, longestMs: RETRY_MS, random })
    const slots = new Slots(options.maxInFlight, clock, parts.instruments)
    this.#deps = {
      ...parts,
      tokens: new OAuthTokens(transport, clock),
      settlements: new SettlementQueue(clock, random, logger),
      slots,
      load: new Load(clock, slots, () => this.#lanes.working),
      budget: new PollBudget(options.maxPerPoll),
      uptime: new Uptime(),
      outage: new OwnOutage(clock, options.ownOutage, {
        began: (since) => this.#outageBegan(since),
        ended: (ended) => parts.events.emit(outageEvent("ended", this.#lanes.states(), ended, clock.now())),
      }),
      target: (endpoint) =>
        new Target(endpoint, vault, defaultPolicy, options.userAgent, options.sendTraceparent),
      storeRetryMs: () => backoff.nextMs(1),
      stopping: () => this.#state !== "running",
      holds: () => schedule.holds(),
      mayRest: () => this.#lanes.mayRest,
      othersWait: () => this.#lanes.freePlaces === 0 && schedule.hasWaiting(clock.now()),
    }
    const { uptime, budget } = this.#deps
    const trouble = (texts: TroubleTexts) => new Trouble(logger, texts, {}, () => clock.elapsedMs())
    const isRunning = () => this.#state === "running"
    this.#claimer = new Claimer({
      ...parts,
      uptime,
      backoff,
      trouble: trouble(CLAIM_TEXTS),
      isRunning,
      room: () => (budget.isSpent ? 0 : this.#lanes.freePlaces),
      claimed: (claim) => this.#lanes.run(claim, this.#deps),
      rested: () => this.#tellIfIdle(),
    })
    this.#poller = new Poller({
      ...parts,
      trouble: trouble(POLL_TEXTS),
      intervalMs: options.pollIntervalMs,
      isRunning,
      begun: () => {
        budget.refill()
        void this.#claimer.run()
      },
      changed: () => {
        for (const run of this.#lanes) run.recall()
      },
      found: (lanes) => {
        for (const { endpointId, dueAt } of lanes) this.#lanes.get(endpointId)?.noticed(dueAt)
      },
      swept: () => this.#swept(),
      ended: () => this.#tellIfIdle(),
    })
    this.#relayExpiry = new RelayExpiry({ ...parts, upSince: () => upSince(this.#deps, clock.now()) })
    this.#maintenance = new Maintenance(store, clock, logger, options.maintenanceIntervalMs)
    this.tasks = new TaskRunner({ ...parts, wake: (lanes) => this.wake(lanes) })
  }

  /** Recovery writes no row: the first poll, at once, finds the waiting lanes. */
  async start(): Promise<void> {
    this.#parts.schedule.serve({ transports: this.#parts.kinds, endpoints: this.#endpoints })
    await this.#parts.schedule.start({ due: () => void this.#claimer.run(), lost: () => this.#lose() })
    this.#state = "running"
    this.#poller.start()
    this.#maintenance.start()
    this.#relayExpiry.start()
    this.tasks.start()
  }

  /** Deliveries of these lanes are due now or at the given times, but not before their gates open. */
  wake(lanes: readonly Woken[]): void {
    const now = this.#parts.clock.now()
    const heldUntil = (endpointId: string) => this.#lanes.heldUntil(endpointId, now) ?? now
    this.#wake(lanes.map((lane) => ({ ...lane, dueAt: Math.max(lane.dueAt, heldUntil(lane.endpointId)) })))
  }

  #wake(lanes: readonly Woken[]): void {
    const now = this.#parts.clock.now()
    this.#parts.schedule.wake(lanes)
    let unclaimed = false
    for (const { endpointId, dueAt, priority } of lanes) {
      const run = this.#lanes.get(endpointId)
      if (run === undefined) unclaimed = true
      else if (dueAt <= now) run.wake(priority)
      else run.wakeAt(dueAt)
    }
    // A lane with a run needs no claim: on a busy endpoint every send would cause one.
    if (unclaimed) void this.#claimer.run()
  }

  /** The `seq` of each of the endpoint's deliveries in flight; undefined when this process does not own the lane. */
  sending(endpointId: string): ReadonlySet<number> | undefined {
    return this.#lanes.get(endpointId)?.sending
  }

  /** The endpoints whose connections this process has: it alone claims their lanes. */
  serve(endpoints: readonly string[]): void {
    this.#endpoints = endpoints
    if (this.#state === "running") this.#serve()
  }

  #serve(): void {
    this.#parts.schedule.serve({ transports: this.#parts.kinds, endpoints: this.#endpoints })
    void this.#claimer.run()
  }

  /** The connection of an endpoint came, went, or takes more. */
  reachChanged(endpointId: string): void {
    this.#lanes.get(endpointId)?.reachChanged()
  }

  /** Another process says that lanes may be due. */
  hint(): void {
    this.#parts.schedule.hint()
  }

  /** Deliveries that did not start are fetched again with the changed endpoint. */
  endpointChanged(endpointId: string, appId: string): void {
    this.#parts.transport.forget(endpointId)
    this.#deps.tokens.forget(endpointId)
    this.#lanes.get(endpointId)?.recall()
    // The change may have opened the gate: only a fetch knows.
    this.#wake([{ endpointId, appId, dueAt: this.#parts.clock.now() }])
  }

  /** Deliveries of these lanes were cancelled: those that did not start are given back and fetched again. */
  recall(which: { readonly endpointId?: string; readonly appId?: string }): void {
    for (const run of this.#lanes) {
      if (run.claim.endpointId === which.endpointId || run.claim.appId === which.appId) run.recall()
    }
  }

  /** Resolves when no lane is working and no claim or poll is running; for tests and for a graceful stop. */
  whenIdle(): Promise<void> {
    if (this.#isIdle()) return Promise.resolve()
    return new Promise((resolve) => this.#onIdle.push(resolve))
  }

  /** A sentence about a missing part of the schedule, such as Redis, or about our own network; null when nothing is wrong. */
  get problem(): string | null {
    const { since } = this.#deps.outage
    const outage = since === null ? null : `No endpoint has answered since ${new Date(since).toISOString()}`
    return this.#parts.schedule.problem() ?? outage
  }

  #outageBegan(since: number): void {
    const { events, clock } = this.#parts
    const began = { since, attempts: 0, isAnswered: false }
    events.emit(outageEvent("began", this.#lanes.states(), began, clock.now()))
    void closeBreakers(this.#parts, this.#lanes.states(), ({ id, appId }) => this.endpointChanged(id, appId))
  }

  /** Polls once; resolves when the lanes that it found are woken. */
  pollOnce(): Promise<void> {
    return this.#poller.runOnce()
  }

  /** Whether a claim or a poll is running; for tests. */
  get isLooking(): boolean {
    return this.#claimer.isClaiming || this.#poller.isPolling
  }

  maintainOnce(): Promise<void> {
    return this.#maintenance.runOnce()
  }

  /** Gives up deliveries to absent agents now. */
  expireOnce(): Promise<void> {
    return this.#relayExpiry.runOnce()
  }

  #swept(): void {
    const { schedule, clock } = this.#parts
    if (schedule.hasWaiting(clock.now())) void this.#claimer.run()
    else if (!this.#claimer.isClaiming) this.#claimer.arm()
    // Another process may have begun a task, or a crash may have interrupted one.
    this.tasks.wake()
    this.#deps.slots.offer()
  }

  /** The lease ran out while this process was paused or cut off: other workers own its lanes now. */
  #lose(): void {
    this.#parts.events.emit({ type: "worker.lease_lost", lanes: this.#lanes.size })
    this.#lanes.loseAll()
    void this.#claimer.run()
    this.#tellIfIdle()
  }

  #isIdle(): boolean {
    return this.#lanes.working === 0 && !this.isLooking
  }

  #tellIfIdle(): void {
    if (!this.#isIdle()) return
    for (const resolve of this.#onIdle.splice(0)) resolve()
  }

  /** Stops claiming, lets requests in flight finish until the deadline, then aborts them; their deliveries stay due. */
  async stop(deadlineMs: number): Promise<void> {
    if (this.#state !== "running") return
    this.#state = "stopping"
    this.#claimer.cancel()
    const polled = this.#poller.stop()
    this.#maintenance.stop()
    this.#relayExpiry.stop()
    const deadline = this.#parts.clock.setTimer(deadlineMs, () => {
      this.#cutOff(deadlineMs)
      this.#deps.settlements.giveUp()
    })
    for (const run of this.#lanes) run.recall()
    await Promise.all([this.whenIdle(), this.tasks.stop(), polled])
    await this.#parts.schedule.stop()
    deadline.cancel()
    this.#deps.outage.stop()
    this.#state = "stopped"
  }

  /** The store is lost: the engine starts and writes nothing more. */
  abandon(): void {
    this.#state = "stopped"
    this.#claimer.cancel()
    void this.#poller.stop()
    this.#maintenance.stop()
    this.#relayExpiry.stop()
    void this.tasks.stop()
    this.#parts.schedule.abandon()
    this.#deps.outage.stop()
    this.#cutOff(null)
  }

  #cutOff(deadlineMs: number | null): void {
    const requests = this.#parts.transport.interrupt()
    if (requests > 0) this.#parts.events.emit({ type: "worker.requests_cut_off", requests, deadlineMs })
  }
}

/**
 * The guard of this process against an outage of its own network. It learns from every attempt of all lanes. During an outage it lets a few
 * requests through, as probes, and attempts without an answer are not counted. The first answer ends it.
 */
import { Alarm } from "../core/alarm.ts"
import type { Clock } from "../core/clock.ts"
import type { Outcome } from "../core/outcome.ts"
import {
  learnOutage,
  type NetworkSign,
  NO_OUTAGE,
  networkSignOf,
  type OutageEvent,
  type OutageSettings,
  outageAt,
} from "../core/own-outage.ts"
import type { Tried } from "./attempt.ts"
import type { LaneState } from "./lane-state.ts"

/** Time between two probes, and the most in flight: with a connect timeout of 10 s there is still a new one each second. */
const PROBE_EVERY_MS = 1000
const MOST_PROBES = 10

export interface OutageListener {
  /** No endpoint has answered since this time. */
  began(since: number): void
  ended(ended: EndedOutage): void
}

export interface EndedOutage {
  readonly since: number
  /** Attempts that were not counted. */
  readonly attempts: number
  /** False: the outage lasted so long that attempts count again, though no endpoint answered. */
  readonly isAnswered: boolean
}

/** A request that has started. */
export interface Start {
  readonly isProbe: boolean
  /** The number of answers, of any endpoint, before it. */
  readonly answers: number
}

export class OwnOutage {
  readonly #clock: Clock
  /** Null: turned off. */
  readonly #settings: OutageSettings | null
  readonly #listener: OutageListener
  readonly #alarm: Alarm
  /** Lanes that wait for a probe: those that were not tried during this silence, which have their turn first, and the others. */
  readonly #untried = new Set<() => void>()
  readonly #tried = new Set<() => void>()
  #state = NO_OUTAGE
  #overSince = 0
  #answers = 0
  #probes = 0
  #nextProbeAt = 0
  #uncounted = 0

  constructor(clock: Clock, settings: OutageSettings | null, listener: OutageListener) {
    this.#clock = clock
    this.#settings = settings
    this.#listener = listener
    this.#alarm = new Alarm(clock, () => this.#rang())
  }

  /** Since when no endpoint has answered; null: there is no outage. */
  get since(): number | null {
    return this.#state.phase === "outage" ? this.#state.since : null
  }

  /** The end of the last outage, or now during one: before it, our network kept deliveries from being tried. */
  overSince(now: number): number {
    return this.#state.phase === "outage" ? now : this.#overSince
  }

  /** False: `retry` is called once when the lane may try again. */
  mayStart({ unansweredSince }: LaneState, retry: () => void): boolean {
    if (this.#state.phase !== "outage" || this.#mayProbe()) return true
    const isTried = unansweredSince !== null && unansweredSince >= this.#state.since
    const waiting = isTried ? this.#tried : this.#untried
    waiting.add(retry)
    this.#setAlarm()
    return false
  }

  #mayProbe(): boolean {
    return this.#probes < MOST_PROBES && this.#clock.now() >= this.#nextProbeAt
  }

  started(): Start {
    const isProbe = this.#state.phase === "outage"
    if (isProbe) {
      this.#probes++
      this.#nextProbeAt = this.#clock.now() + PROBE_EVERY_MS
    }
    return { isProbe, answers: this.#answers }
  }

  /** Called for every attempt, with its `start`. Returns whether it counts. */
  ended(lane: LaneState, tried: Tried, start: Start): boolean {
    if (start.isProbe) this.#probes--
    if (this.#settings === null) return true
    const { outcome, result, target, startedAt } = tried
    const now = this.#clock.now()
    const sign = this.#signOf(outcome, result?.responseStatus ?? null, start)
    if (sign === "answered") {
      this.#answers++
      lane.unansweredSince = null
    }
    if (sign === "unanswered") lane.unansweredSince ??= now
    if (sign !== null && target !== null) {
      const { id: endpointId, appId } = target.endpoint
      const { host } = target
      const unansweredSince = lane.unansweredSince ?? now
      this.#learn({ kind: sign, endpointId, appId, host, startedAt, unansweredSince }, now)
    }
    // By the alarm, and not at once: the lane of this attempt is in the middle of a step.
    this.#setAlarm()
    if (outcome.kind !== "failure" || sign === "answered") return true
    // A request that started during the outage may time out after its end.
    if (this.#state.phase !== "outage" && startedAt >= this.#overSince) return true
    this.#uncounted++
    return false
  }

  /** A request without an answer says nothing if another endpoint answered meanwhile: the network worked. */
  #signOf(outcome: Outcome, status: number | null, { answers }: Start): NetworkSign | null {
    const sign = networkSignOf(outcome, status !== null)
    return sign === "unanswered" && answers !== this.#answers ? null : sign
  }

  #learn(event: OutageEvent, now: number): void {
    const before = this.#state
    this.#state = learnOutage(before, event, now, this.#settings!)
    if (this.#state.phase === "outage" && before.phase !== "outage") this.#began(this.#state.since)
    if (this.#state.phase !== "outage" && before.phase === "outage")
      this.#ended(before.since, event.kind === "answered")
  }

  #began(since: number): void {
    this.#uncounted = 0
    this.#nextProbeAt = 0
    this.#listener.began(since)
  }

  #ended(since: number, isAnswered: boolean): void {
    this.#overSince = this.#clock.now()
    this.#listener.ended({ since, attempts: this.#uncounted, isAnswered })
  }

  #setAlarm(): void {
    const isWaiting = this.#untried.size + this.#tried.size > 0
    if (!isWaiting && this.#state.phase === "normal") return
    const now = this.#clock.now()
    this.#alarm.setBy(outageAt(this.#state, now, this.#settings!), isWaiting ? this.#nextOfferAt(now) : null)
  }

  #nextOfferAt(now: number): number | null {
    if (this.#state.phase !== "outage") return now
    return this.#probes < MOST_PROBES ? this.#nextProbeAt : null
  }

  #rang(): void {
    this.#learn({ kind: "tick" }, this.#clock.now())
    for (const waiting of [this.#untried, this.#tried]) this.#offer(waiting)
    this.#setAlarm()
  }

  /** A lane that has nothing to send any more passes its turn on. */
  #offer(waiting: Set<() => void>): void {
    let left = waiting.size
    for (const retry of waiting) {
      if (left-- === 0 || (this.#state.phase === "outage" && !this.#mayProbe())) return
      waiting.delete(retry)
      retry()
    }
  }

  stop(): void {
    this.#alarm.cancel()
  }
}

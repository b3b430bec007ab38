/** The lanes of this process: a run for each claimed lane, and the cached state of lanes that it had before. */
import { BoundedCache } from "../core/bounded-cache.ts"
import type { LaneClaim, LaneStore } from "../store/store.ts"
import type { LaneDependencies } from "./lane-dependencies.ts"
import { LaneRun } from "./lane-run.ts"
import { LaneState } from "./lane-state.ts"
import { ApplicationRates } from "./limits.ts"

/** Limits for open lanes with nothing to do, and for states, which lanes without a run leave behind. */
const MOST_RESTING_LANES = 10_000
const MOST_STATES = 25_000

export interface LaneTableListener {
  /** A place may be free for a waiting lane. */
  placeFree(): void
  /** The lane goes back to the schedule. */
  released(claim: LaneClaim, nextDueAt: number | null): void
  /** A run ended or began to rest: the table may be idle. */
  changed(): void
}

export class LaneTable {
  readonly #store: LaneStore
  readonly #places: number
  readonly #laneConcurrency: number
  readonly #listener: LaneTableListener
  readonly #runs = new Map<string, LaneRun>()
  readonly #states = new BoundedCache<string, LaneState>(MOST_STATES)
  readonly #appRates = new ApplicationRates()
  #resting = 0

  /** `places`: the most lanes that may be working at once. */
  constructor(store: LaneStore, places: number, laneConcurrency: number, listener: LaneTableListener) {
    this.#store = store
    this.#places = places
    this.#laneConcurrency = laneConcurrency
    this.#listener = listener
  }

  get size(): number {
    return this.#runs.size
  }

  /** Lanes that are not resting. */
  get working(): number {
    return this.#runs.size - this.#resting
  }

  get freePlaces(): number {
    return Math.max(0, this.#places - this.working)
  }

  get mayRest(): boolean {
    return this.#resting < MOST_RESTING_LANES
  }

  get(endpointId: string): LaneRun | undefined {
    return this.#runs.get(endpointId)
  }

  /** When a lane that this process has had may send again, as far as is known; null: nothing holds it. */
  heldUntil(endpointId: string, now: number): number | null {
    return this.#states.get(endpointId)?.gate.closed(now)?.until ?? null
  }

  [Symbol.iterator](): Iterator<LaneRun> {
    return this.#runs.values()
  }

  /** Of all lanes that this process has or has had. */
  states(): Iterable<LaneState> {
    return this.#states.values()
  }

  run(claim: LaneClaim, deps: LaneDependencies): void {
    const { endpointId } = claim
    const current = this.#runs.get(endpointId)
    if (current?.claim.token === claim.token) return current.wake()
    current?.lose()
    const run: LaneRun = new LaneRun(deps, this.#store, claim, this.#stateOf(claim, deps), {
      rests: (rests) => this.#rests(rests),
      finished: (nextDueAt) => this.#finished(run, nextDueAt),
    })
    this.#runs.set(endpointId, run)
    run.wake()
  }

  #stateOf({ endpointId, appId }: LaneClaim, { random }: LaneDependencies): LaneState {
    const known = this.#states.get(endpointId)
    if (known !== undefined) return known
    const state = new LaneState(appId, this.#appRates, this.#laneConcurrency, random)
    this.#states.set(endpointId, state)
    return state
  }

  #rests(rests: boolean): void {
    const wasFull = this.freePlaces === 0
    this.#resting += rests ? 1 : -1
    if (rests && wasFull) this.#listener.placeFree()
    this.#listener.changed()
  }

  #finished(run: LaneRun, nextDueAt: number | null): void {
    const { claim } = run
    if (this.#runs.get(claim.endpointId) !== run) return
    this.#runs.delete(claim.endpointId)
    this.#listener.released(claim, nextDueAt)
    this.#listener.placeFree()
    this.#listener.changed()
  }

  loseAll(): void {
    for (const run of this.#runs.values()) run.lose()
    this.#runs.clear()
  }
}

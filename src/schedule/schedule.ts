/**
 * Who may work on which lane, and when. A lane is the queue in front of one endpoint; one worker owns it at a time.
 *
 * The schedule is an index that can be rebuilt from the store at any time. A lane that was woken is offered once it is due, to one worker
 * at a time, each time with a higher token. Applications take turns, and so do the lanes of one application: a released lane goes to the
 * end of the queue. A worker whose lease ran out has lost all its claims: it is told, and its writes are refused by the token.
 */
import type { Moment } from "../core/clock.ts"
import type { LaneClaim, LaneWake } from "../store/store.ts"

/** What a schedule tells the engine by itself. */
export interface ScheduleListener {
  /** Lanes may be due. */
  due(): void
  /** All claims made so far are lost; new claims can be made. */
  lost(): void
}

/** The lanes that a worker can serve. A lane that no worker can serve waits, and costs the claims of other lanes nothing. */
export interface ServedLanes {
  /** Lanes of these transports, as `transportOf` names them. */
  readonly transports: readonly string[]
  /** And these endpoints, whatever their transport. */
  readonly endpoints: readonly string[]
}

export interface Schedule {
  /** Which lanes this worker claims from now on: none before the first call. Lanes that it has already stay with it. */
  serve(lanes: ServedLanes): void
  start(listener: ScheduleListener): Promise<void>
  /** A hint that the lanes have something to do at these times, which the store has already. An earlier known time stays. */
  wake(lanes: readonly LaneWake[]): void
  /** Another process says that lanes may be due. */
  hint(): void
  /**
   * Takes at most `most` due lanes that this worker serves. A lane that this worker has already, and that another process woke meanwhile, is given again with its
   * token. Rejects when the schedule cannot be reached: ask again later.
   */
  claim(most: number, now: number): Promise<LaneClaim[]>
  /**
   * Gives a lane back until `nextDueAt` or an earlier wake; null: nothing waits. The release is kept until it can be written. Resolves
   * when it is written, or when the claim was lost.
   */
  release(claim: LaneClaim, nextDueAt: number | null, now: number): Promise<void>
  /** When the next unclaimed lane that this worker serves is due, as far as this process knows; null when none waits. */
  nextDueAt(): number | null
  /** Whether such a lane is due; workers should then release their lanes in good time. */
  hasWaiting(now: number): boolean
  /** Whether the claims still stand, by this process's own clock. Nothing is sent when they do not. */
  holds(): boolean
  /** Which part of the schedule is unavailable, in a sentence; null when none is. Lanes are offered all the same. */
  problem(): string | null
  /**
   * Reads the store for lanes that no wake announced: all lanes, or the next page. `at` is as for `LaneStore.scanLanes`. `found` is told
   * of every lane with live deliveries, also of lanes that this worker has.
   */
  sweep(whole: boolean, at?: Moment, found?: (lanes: readonly LaneWake[]) => void): Promise<void>
  /** Gives back all claims, if it can. */
  stop(): Promise<void>
  /** Ends at once, as in a crash: other workers take over the claims when the lease has run out. */
  abandon(): void
}

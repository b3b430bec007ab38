/**
 * Who may work on which lane, and when. A lane is the line in front of one endpoint; one worker owns it at a time.
 *
 * The schedule is an index: the truth about what waits is in the store, and a schedule can be rebuilt from it at any time. It
 * promises that a lane that was woken is offered once its time has come, to one worker at a time, each time with a higher token;
 * that lanes take turns, by application and then by endpoint; and that a lane given back goes to the end of the line.
 *
 * A worker whose lease ran out has lost all its claims: it is told, and whatever it still writes is refused by the token.
 */
import type { Moment } from "../core/clock.ts"
import type { LaneClaim, LaneWake } from "../store/store.ts"

/** What a schedule tells the engine by itself. */
export interface ScheduleListener {
  /** Lanes may be due. */
  due(): void
  /** None of the claims made up to now stands any more; new ones can be made. */
  lost(): void
}

export interface Schedule {
  start(listener: ScheduleListener): Promise<void>
  /** A hint that the lanes have something to do at these times: the store has it already. An earlier time that is known stays. */
  wake(lanes: readonly LaneWake[]): void
  /** Another process says that lanes may be due. */
  hint(): void
  /**
   * Takes at most `most` lanes whose time has come. A lane that this worker has already, and that another process woke meanwhile, is
   * given again, with the token that it has. Rejects when the schedule cannot be reached: ask again later.
   */
  claim(most: number, now: number): Promise<LaneClaim[]>
  /**
   * Gives a lane back; it comes up again at `nextDueAt`, or earlier if it was woken meanwhile. Null: nothing waits. Kept until
   * it can be written; resolves when it is, or when the claim was lost anyhow.
   */
  release(claim: LaneClaim, nextDueAt: number | null, now: number): Promise<void>
  /** When the next unclaimed lane is due, as far as this process knows; null when none waits. */
  nextDueAt(): number | null
  /** Whether a lane waits for its turn right now; what is being worked on should then be given back in good time. */
  hasWaiting(now: number): boolean
  /** Whether the claims still stand, as far as this process's own clock can tell: nothing is sent when they do not. */
  holds(): boolean
  /** What the schedule has to do without, in a sentence; null when nothing is missing. Lanes are offered all the same. */
  problem(): string | null
  /**
   * Looks through the store for what no wake announced: all of it, or the next part. `at` is as for `LaneStore.scanLanes`. `found` is told
   * of every lane that has something waiting, also of those that this worker has.
   */
  sweep(whole: boolean, at?: Moment, found?: (lanes: readonly LaneWake[]) => void): Promise<void>
  /** Gives back what is claimed, if it can. */
  stop(): Promise<void>
  /** Ends at once, as in a crash: what is claimed is taken over when the lease has run out. */
  abandon(): void
}

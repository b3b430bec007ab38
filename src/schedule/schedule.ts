/**
 * Who may work on which lane, and when. A lane is the line in front of one endpoint; one worker owns it at a time.
 *
 * The schedule is an index: the truth about what waits is in the store, and a schedule can be rebuilt from it at any time. It
 * promises that a lane that was woken is offered once its time has come, to one worker at a time, each time with a higher token;
 * that lanes take turns, by application and then by endpoint; and that a lane given back goes to the end of the line.
 */
import type { LaneWake } from "../store/store.ts"

export interface LaneClaim {
  readonly endpointId: string
  readonly appId: string
  /** Every settle carries it; a claim made later has a higher one. */
  readonly token: number
}

export interface Schedule {
  /** The lanes have something to do at these times. An earlier time that is already known stays. */
  wake(lanes: readonly LaneWake[]): void
  /** Takes at most `most` lanes whose time has come. */
  claim(most: number, now: number): Promise<LaneClaim[]>
  /** Gives a lane back; it comes up again at `nextDueAt`, or earlier if it was woken meanwhile. Null: nothing waits. */
  release(claim: LaneClaim, nextDueAt: number | null, now: number): Promise<void>
  /** When the next unclaimed lane is due; null when none waits. */
  nextDueAt(): number | null
  /** Whether a lane waits for its turn right now; what is being worked on should then be given back in good time. */
  hasWaiting(now: number): boolean
}

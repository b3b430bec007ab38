/** Claims due lanes: after a wake or a hint of the schedule, when a place is free, and when the next lane comes due. */
import type { Backoff } from "../core/backoff.ts"
import type { Clock, Timer } from "../core/clock.ts"
import type { Instruments } from "../observe/instruments.ts"
import type { Trouble } from "../observe/trouble.ts"
import type { Schedule } from "../schedule/schedule.ts"
import type { LaneClaim } from "../store/store.ts"
import type { Uptime } from "./uptime.ts"

export interface ClaimerParts {
  readonly schedule: Schedule
  readonly clock: Clock
  /** Delays between claims while the schedule cannot be reached. */
  readonly backoff: Backoff
  readonly uptime: Uptime
  readonly trouble: Trouble
  readonly instruments: Instruments
  isRunning(): boolean
  /** The number of lanes that may be claimed now. */
  room(): number
  claimed(claim: LaneClaim): void
  /** No claim is in progress any more. */
  rested(): void
}

export class Claimer {
  readonly #parts: ClaimerParts
  #isClaiming = false
  #again = false
  #alarm: Timer | null = null

  constructor(parts: ClaimerParts) {
    this.#parts = parts
  }

  get isClaiming(): boolean {
    return this.#isClaiming
  }

  /** Claims, and claims again if another call arrived meanwhile. */
  async run(): Promise<void> {
    this.#again = true
    if (this.#isClaiming) return
    this.#isClaiming = true
    const { clock, backoff, uptime, trouble, isRunning, rested } = this.#parts
    try {
      while (this.#again) {
        this.#again = false
        await this.#claim()
      }
      this.#isClaiming = false
      this.arm()
      rested()
    } catch (error) {
      this.#isClaiming = false
      uptime.failed()
      rested()
      if (!isRunning()) return
      trouble.failed(error as Error)
      this.#arm(clock.now() + backoff.nextMs())
    }
  }

  async #claim(): Promise<void> {
    const { schedule, clock, backoff, uptime, trouble, instruments, isRunning, room, claimed } = this.#parts
    if (!isRunning()) return
    // Also without room: the claim carries releases, and returns wakes for lanes that this worker owns.
    const startedAt = instruments.now()
    const claims = await schedule.claim(room(), clock.now())
    instruments.lanesClaimed(claims.length, instruments.now() - startedAt)
    uptime.reached(clock.now())
    trouble.passed()
    backoff.reset()
    // Lanes claimed while the process began to stop are released with all others.
    if (isRunning()) for (const claim of claims) claimed(claim)
  }

  /** Sets the alarm for the next lane whose time comes. */
  arm(): void {
    this.#arm(this.#parts.schedule.nextDueAt())
  }

  #arm(dueAt: number | null): void {
    const { clock, isRunning, room } = this.#parts
    this.cancel()
    if (dueAt === null || !isRunning() || room() === 0) return
    this.#alarm = clock.setTimer(Math.max(0, dueAt - clock.now()), () => void this.run())
  }

  cancel(): void {
    this.#alarm?.cancel()
    this.#alarm = null
  }
}

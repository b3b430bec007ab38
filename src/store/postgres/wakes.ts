/** Wakes lanes that a statement of unknown outcome may have marked deliveries for, as soon as the database can be used. */
import { statement } from "../statements.ts"
import type { Database } from "./connection.ts"
import type { LaneSessions } from "./lane-sessions.ts"

const WAKE = statement(
  "lanes.wake",
  "INSERT INTO lane_wakes (lane_id, due_at) SELECT lane_id, 0 FROM unnest($1::text[]) AS lane_id",
)

const AGAIN_MS = 1000
/** A statement in flight when the connection broke may commit up to this much later. */
const LATE_MS = 15_000

export class Wakes {
  readonly #database: Database
  readonly #sessions: LaneSessions
  readonly #lanes = new Set<string>()
  readonly #timers = new Set<NodeJS.Timeout>()
  readonly #forgetUp: () => void
  #closed = false

  constructor(database: Database, sessions: LaneSessions) {
    this.#database = database
    this.#sessions = sessions
    this.#forgetUp = database.onUp(() => void this.#write())
  }

  add(lanes: readonly string[]): void {
    if (lanes.length === 0 || this.#closed) return
    this.#wake(lanes)
    this.#in(LATE_MS, () => this.#wake(lanes))
  }

  /** Tries to write the remaining wakes. */
  async close(): Promise<void> {
    this.#forgetUp()
    for (const timer of this.#timers) clearTimeout(timer)
    const last = this.#write()
    this.#closed = true
    await last
  }

  #wake(lanes: readonly string[]): void {
    for (const lane of lanes) {
      // An open session takes every mark of its token for a handoff in flight.
      this.#sessions.shut(lane)
      this.#lanes.add(lane)
    }
    void this.#write()
  }

  async #write(): Promise<void> {
    if (this.#lanes.size === 0 || this.#closed) return
    const lanes = [...this.#lanes]
    this.#lanes.clear()
    try {
      await this.#database.run(WAKE, [lanes])
    } catch {
      for (const lane of lanes) this.#lanes.add(lane)
      if (!this.#closed) this.#in(AGAIN_MS, () => void this.#write())
    }
  }

  #in(delayMs: number, work: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      work()
    }, delayMs).unref()
    this.#timers.add(timer)
  }
}

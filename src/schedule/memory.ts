/** The schedule of a single process: lanes in memory, rebuilt from the store at start. */
import type { Moment } from "../core/clock.ts"
import type { LaneClaim, LaneWake, Store } from "../store/store.ts"
import { Heap } from "./heap.ts"
import { Pages } from "./pages.ts"
import type { Schedule } from "./schedule.ts"

interface Lane {
  readonly endpointId: string
  readonly appId: string
  /** When it next has something to do, as far as is known. */
  dueAt: number
  state: "later" | "ready" | "claimed"
}

interface Alarm {
  readonly at: number
  readonly lane: Lane
}

const SPARE_ALARMS = 1000

export class MemorySchedule implements Schedule {
  readonly #lanes = new Map<string, Lane>()
  /** Lanes whose time has not come. An alarm whose time is no longer the lane's is ignored when it comes up. */
  #alarms = new Heap<Alarm>()
  /** Lanes whose time has come: for each application a line, and the applications in turn. */
  readonly #ready = new Map<string, Lane[]>()
  readonly #turns: string[] = []
  readonly #pages: Pages
  #lastToken: number

  constructor(store: Pick<Store, "scanLanes">, firstToken: number) {
    this.#pages = new Pages(store)
    this.#lastToken = firstToken
  }

  async start(): Promise<void> {}

  /** There is no other process. */
  hint(): void {}

  wake(lanes: readonly LaneWake[]): void {
    for (const wake of lanes) {
      const lane = this.#lanes.get(wake.endpointId)
      if (lane === undefined) {
        this.#add({ endpointId: wake.endpointId, appId: wake.appId, dueAt: wake.dueAt, state: "later" })
      } else if (wake.dueAt < lane.dueAt) {
        lane.dueAt = wake.dueAt
        if (lane.state === "later") this.#alarms.push({ at: lane.dueAt, lane })
      }
    }
  }

  #add(lane: Lane): void {
    this.#lanes.set(lane.endpointId, lane)
    this.#alarms.push({ at: lane.dueAt, lane })
    if (this.#alarms.size > 2 * this.#lanes.size + SPARE_ALARMS) this.#dropStaleAlarms()
  }

  /** A busy lane with a retry tomorrow leaves an alarm for tomorrow behind at every turn. */
  #dropStaleAlarms(): void {
    this.#alarms = new Heap<Alarm>()
    for (const lane of this.#lanes.values())
      if (lane.state === "later") this.#alarms.push({ at: lane.dueAt, lane })
  }

  async claim(most: number, now: number): Promise<LaneClaim[]> {
    this.#promote(now)
    const claims: LaneClaim[] = []
    while (claims.length < most) {
      const lane = this.#takeTurn()
      if (lane === undefined) break
      lane.state = "claimed"
      lane.dueAt = Number.POSITIVE_INFINITY
      claims.push({ endpointId: lane.endpointId, appId: lane.appId, token: ++this.#lastToken })
    }
    return claims
  }

  /** The next application's first lane; the application then goes to the end. */
  #takeTurn(): Lane | undefined {
    const appId = this.#turns.shift()
    if (appId === undefined) return undefined
    const line = this.#ready.get(appId)!
    const lane = line.shift()!
    if (line.length > 0) this.#turns.push(appId)
    else this.#ready.delete(appId)
    return lane
  }

  #promote(now: number): void {
    for (
      let alarm = this.#alarms.peek();
      alarm !== undefined && alarm.at <= now;
      alarm = this.#alarms.peek()
    ) {
      this.#alarms.pop()
      const { lane } = alarm
      if (lane.state !== "later" || lane.dueAt !== alarm.at || this.#lanes.get(lane.endpointId) !== lane)
        continue
      lane.state = "ready"
      const line = this.#ready.get(lane.appId)
      if (line === undefined) {
        this.#ready.set(lane.appId, [lane])
        this.#turns.push(lane.appId)
      } else {
        line.push(lane)
      }
    }
  }

  async release(claim: LaneClaim, nextDueAt: number | null, now: number): Promise<void> {
    const lane = this.#lanes.get(claim.endpointId)
    if (lane === undefined || lane.state !== "claimed") return
    const dueAt = Math.min(lane.dueAt, nextDueAt ?? Number.POSITIVE_INFINITY)
    this.#lanes.delete(lane.endpointId)
    if (dueAt === Number.POSITIVE_INFINITY) return
    // Not its head's due time but now at the earliest: "oldest first" let one backlog keep every turn.
    this.#add({ ...lane, dueAt: Math.max(dueAt, now), state: "later" })
  }

  nextDueAt(): number | null {
    if (this.#turns.length > 0) return 0
    for (let alarm = this.#alarms.peek(); alarm !== undefined; alarm = this.#alarms.peek()) {
      const { lane } = alarm
      if (lane.state === "later" && lane.dueAt === alarm.at && this.#lanes.get(lane.endpointId) === lane)
        return alarm.at
      this.#alarms.pop()
    }
    return null
  }

  /** How many alarms are set, stale ones too; they must not pile up. */
  get alarms(): number {
    return this.#alarms.size
  }

  hasWaiting(now: number): boolean {
    return (this.nextDueAt() ?? Number.POSITIVE_INFINITY) <= now
  }

  /** There is no other process that could take them over. */
  holds(): boolean {
    return true
  }

  problem(): string | null {
    return null
  }

  sweep(whole: boolean, at?: Moment, found?: (lanes: readonly LaneWake[]) => void): Promise<void> {
    return this.#pages.read(whole, at, (lanes) => {
      this.wake(lanes)
      found?.(lanes)
    })
  }

  async stop(): Promise<void> {}

  abandon(): void {}
}

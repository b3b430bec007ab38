/** The schedule of a single process: lanes in memory, rebuilt from the store at start. */
import type { Moment } from "../core/clock.ts"
import { transportOf } from "../core/transport-kind.ts"
import type { LaneClaim, LaneWake, Store } from "../store/store.ts"
import { Heap } from "./heap.ts"
import { Pages } from "./pages.ts"
import type { Schedule, ServedLanes } from "./schedule.ts"

interface Lane {
  readonly endpointId: string
  readonly appId: string
  transport: string
  /** When it next has something to do, as far as is known. */
  dueAt: number
  /** Replaced: another object stands for the lane; heaps may still have this one. */
  state: "later" | "ready" | "claimed" | "replaced"
}

interface QueueEntry {
  readonly at: number
  readonly lane: Lane
}

type LaneSource = Pick<Store, "scanLanes" | "getEndpoints">

const SPARE_ENTRIES = 1000
/** The queue of the endpoints that are served by name. No transport has this name. */
const NAMED = ""

export class MemorySchedule implements Schedule {
  readonly #store: LaneSource
  readonly #lanes = new Map<string, Lane>()
  /** By transport: lanes that are not due, or not served. An entry that is not current is ignored. */
  readonly #queues = new Map<string, Heap<QueueEntry>>()
  /** Due lanes that are served, by application; the applications take turns. */
  readonly #ready = new Map<string, Lane[]>()
  readonly #turns: string[] = []
  /** Wakes without a transport, until the next claim has read it. */
  readonly #unplaced = new Map<string, LaneWake>()
  readonly #pages: Pages
  #transports: readonly string[] = []
  #named = new Set<string>()
  #lastToken: number

  constructor(store: LaneSource, firstToken: number) {
    this.#store = store
    this.#pages = new Pages(store)
    this.#lastToken = firstToken
  }

  serve({ transports, endpoints }: ServedLanes): void {
    const named = new Set(endpoints)
    const both = [...named, ...this.#named]
    const changed = new Set(both.filter((id) => named.has(id) !== this.#named.has(id)))
    if (transports.join() !== this.#transports.join()) {
      for (const { endpointId } of [...this.#ready.values()].flat()) changed.add(endpointId)
      this.#ready.clear()
      this.#turns.length = 0
    }
    this.#transports = transports
    this.#named = named
    for (const endpointId of changed) {
      const lane = this.#lanes.get(endpointId)
      if (lane !== undefined && lane.state !== "claimed") this.#replace(lane, lane.transport)
    }
  }

  async start(): Promise<void> {}

  /** There is no other process. */
  hint(): void {}

  wake(lanes: readonly LaneWake[]): void {
    for (const wake of lanes) {
      const { endpointId, dueAt, transport } = wake
      if (transport !== undefined) this.#wake(wake, transport)
      else if (dueAt < (this.#unplaced.get(endpointId)?.dueAt ?? Number.POSITIVE_INFINITY))
        this.#unplaced.set(endpointId, wake)
    }
  }

  #wake({ endpointId, appId, dueAt }: LaneWake, transport: string): void {
    const lane = this.#lanes.get(endpointId)
    if (lane === undefined) return this.#add({ endpointId, appId, transport, dueAt, state: "later" })
    const isEarlier = dueAt < lane.dueAt
    if (isEarlier) lane.dueAt = dueAt
    if (lane.state === "claimed") lane.transport = transport
    else if (lane.transport !== transport) this.#replace(lane, transport)
    else if (isEarlier && lane.state === "later") this.#enqueue(lane)
  }

  /** Puts a lane that waits into the queue that it belongs to now. */
  #replace(lane: Lane, transport: string): void {
    lane.state = "replaced"
    this.#add({ ...lane, transport, state: "later" })
  }

  #add(lane: Lane): void {
    this.#lanes.set(lane.endpointId, lane)
    this.#enqueue(lane)
  }

  #enqueue(lane: Lane): void {
    const name = this.#named.has(lane.endpointId) ? NAMED : lane.transport
    const queue = this.#queues.get(name) ?? new Heap<QueueEntry>()
    this.#queues.set(name, queue)
    queue.push({ at: lane.dueAt, lane })
    // A busy lane with a retry tomorrow leaves an entry for tomorrow behind at every release.
    if (queue.size > 2 * this.#lanes.size + SPARE_ENTRIES) queue.retain(isCurrent)
  }

  async claim(most: number, now: number): Promise<LaneClaim[]> {
    if (this.#unplaced.size > 0) await this.#place()
    for (const queue of this.#served()) this.#promote(queue, now)
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

  async #place(): Promise<void> {
    const wakes = [...this.#unplaced.values()]
    const endpoints = await this.#store.getEndpoints(wakes.map(({ endpointId }) => endpointId))
    const urls = new Map(endpoints.map(({ id, url }) => [id, url]))
    for (const wake of wakes) {
      const { endpointId } = wake
      this.#wake(wake, transportOf(urls.get(endpointId) ?? ""))
      if (this.#unplaced.get(endpointId) === wake) this.#unplaced.delete(endpointId)
    }
  }

  *#served(): Iterable<Heap<QueueEntry>> {
    for (const name of [NAMED, ...this.#transports]) {
      const queue = this.#queues.get(name)
      if (queue !== undefined) yield queue
    }
  }

  /** The next application's first lane; the application then goes to the end. */
  #takeTurn(): Lane | undefined {
    for (let appId = this.#turns.shift(); appId !== undefined; appId = this.#turns.shift()) {
      const lanes = this.#ready.get(appId)!
      const lane = lanes.shift()!
      if (lanes.length > 0) this.#turns.push(appId)
      else this.#ready.delete(appId)
      // A lane whose transport changed while it was ready is in another queue.
      if (lane.state === "ready") return lane
    }
    return undefined
  }

  #promote(queue: Heap<QueueEntry>, now: number): void {
    for (let entry = queue.peek(); entry !== undefined && entry.at <= now; entry = queue.peek()) {
      queue.pop()
      if (!isCurrent(entry)) continue
      const { lane } = entry
      lane.state = "ready"
      const lanes = this.#ready.get(lane.appId)
      if (lanes === undefined) {
        this.#ready.set(lane.appId, [lane])
        this.#turns.push(lane.appId)
      } else {
        lanes.push(lane)
      }
    }
  }

  async release(claim: LaneClaim, nextDueAt: number | null, now: number): Promise<void> {
    const lane = this.#lanes.get(claim.endpointId)
    if (lane === undefined || lane.state !== "claimed") return
    const dueAt = Math.min(lane.dueAt, nextDueAt ?? Number.POSITIVE_INFINITY)
    this.#lanes.delete(lane.endpointId)
    if (dueAt === Number.POSITIVE_INFINITY) return
    // Not its head's due time but now at the earliest: "oldest first" let one backlogged lane take every claim.
    this.#add({ ...lane, dueAt: Math.max(dueAt, now), state: "later" })
  }

  nextDueAt(): number | null {
    if (this.#turns.length > 0) return 0
    let nextAt = Number.POSITIVE_INFINITY
    for (const { dueAt } of this.#unplaced.values()) nextAt = Math.min(nextAt, dueAt)
    for (const queue of this.#served()) {
      while (queue.size > 0 && !isCurrent(queue.peek()!)) queue.pop()
      nextAt = Math.min(nextAt, queue.peek()?.at ?? nextAt)
    }
    return nextAt === Number.POSITIVE_INFINITY ? null : nextAt
  }

  /** The number of queue entries, stale ones too; for tests. */
  get queueEntries(): number {
    return [...this.#queues.values()].reduce((sum, { size }) => sum + size, 0)
  }

  hasWaiting(now: number): boolean {
    return (this.nextDueAt() ?? Number.POSITIVE_INFINITY) <= now
  }

  /** There is no other process that could take lanes over. */
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

function isCurrent({ at, lane }: QueueEntry): boolean {
  return lane.state === "later" && lane.dueAt === at
}

/** Workers that do nothing but take numbers out of a table, lane by lane: the least that shows whether a wake was lost. */
import { setImmediate } from "node:timers/promises"
import type { LaneClaim } from "../../src/store/store.ts"
import type { LaneWorld, Worker } from "./lanes.ts"

const TABLE = "CREATE TABLE work (lane text, number int); CREATE INDEX work_lane ON work (lane)"
const SEND = {
  name: "work.send",
  text: `
    WITH w AS (INSERT INTO work SELECT lane, $2 FROM unnest($1::text[]) AS lane)
    INSERT INTO lane_wakes (lane_id, due_at) SELECT lane, 0 FROM unnest($1::text[]) AS lane`,
}
// As the store's fetch and settle do: all lanes at once, in order of id, fenced by the token.
const TAKE = {
  name: "work.take",
  text: `
    WITH l AS MATERIALIZED (
      SELECT l.id FROM unnest($1::text[], $2::bigint[]) AS c(id, token)
        JOIN lanes l ON l.id = c.id AND l.token = c.token
       ORDER BY l.id FOR NO KEY UPDATE OF l
    ), touched AS (UPDATE lanes SET since = since FROM l WHERE lanes.id = l.id)
    DELETE FROM work WHERE ctid IN (
      SELECT w.ctid FROM l CROSS JOIN LATERAL (SELECT ctid FROM work WHERE lane = l.id LIMIT 3) w
    ) RETURNING lane`,
}

export class LaneWorkers {
  readonly #world: LaneWorld
  readonly #workers: readonly CrewMember[]
  /** Lanes that two workers had at the same time. */
  readonly shared: string[] = []

  private constructor(world: LaneWorld, workers: readonly Worker[]) {
    this.#world = world
    const holders = new Map<string, CrewMember>()
    this.#workers = workers.map((worker) => new CrewMember(worker, holders, this.shared))
  }

  static async start(world: LaneWorld, workers: readonly Worker[]): Promise<LaneWorkers> {
    await world.sql(TABLE)
    return new LaneWorkers(world, workers)
  }

  /** Sends to each of these lanes, and tells one of the workers, or none. */
  async send(lanes: readonly string[], told: number | null): Promise<void> {
    await this.#world.database.run(SEND, [lanes, 0])
    if (told !== null) this.#workers[told % this.#workers.length]!.pump()
  }

  async left(): Promise<number> {
    return (await this.#world.sql("SELECT count(*) FROM work"))[0]!.count as number
  }
}

class CrewMember {
  readonly #worker: Worker
  readonly #holders: Map<string, CrewMember>
  readonly #shared: string[]
  readonly #woken = new Set<string>()
  #busy = 0
  #pumping = false
  #pumpAgain = false

  constructor(worker: Worker, holders: Map<string, CrewMember>, shared: string[]) {
    this.#worker = worker
    this.#holders = holders
    this.#shared = shared
    worker.onDue = () => this.pump()
    worker.onLost = () => this.pump()
  }

  pump(): void {
    this.#pumpAgain = true
    if (!this.#pumping) void this.#pump()
  }

  async #pump(): Promise<void> {
    this.#pumping = true
    const { schedule } = this.#worker
    while (this.#pumpAgain) {
      this.#pumpAgain = false
      const claims = await schedule.claim(Math.max(0, 12 - this.#busy), 1).catch(() => [])
      const fresh: LaneClaim[] = []
      for (const claim of claims) {
        const holder = this.#holders.get(claim.endpointId)
        if (holder === this) this.#woken.add(claim.endpointId)
        else fresh.push(claim)
        if (holder !== undefined && holder !== this) this.#shared.push(claim.endpointId)
        this.#holders.set(claim.endpointId, this)
      }
      this.#busy += fresh.length
      // In pairs: a statement then waits for one lane while it has another.
      for (let i = 0; i < fresh.length; i += 2) void this.#work(fresh.slice(i, i + 2))
      if (schedule.nextDueAt() === 0 && this.#busy < 12) this.#pumpAgain = true
    }
    this.#pumping = false
  }

  async #work(claims: readonly LaneClaim[]): Promise<void> {
    const ids = claims.map(({ endpointId }) => endpointId)
    const tokens = claims.map(({ token }) => token)
    for (let found = 1; found > 0 || ids.some((id) => this.#woken.has(id)); ) {
      for (const id of ids) this.#woken.delete(id)
      const rows = await this.#worker.database.run(TAKE, [ids, tokens]).catch(() => null)
      found = rows?.length ?? 0
      // An unknown end: looked at again by whoever has it then.
      if (rows === null) break
    }
    if (Math.random() < 0.5) await setImmediate()
    for (const claim of claims) {
      // Woken between the last look and now: whoever has it next must look.
      const dueAt = this.#woken.delete(claim.endpointId) || !this.#worker.schedule.holds() ? 0 : null
      this.#holders.delete(claim.endpointId)
      void this.#worker.schedule.release(claim, dueAt, 1)
    }
    this.#busy -= claims.length
    this.pump()
  }
}

/** The safety net under the wakes: compares the due times of lanes with the store's deliveries, page by page. */
import type { Moment } from "../../core/clock.ts"
import type { Database } from "../../store/postgres/connection.ts"
import { patience, type Statement } from "../../store/postgres/statement.ts"
import type { Row } from "../../store/rows.ts"
import type { LaneWake, Store } from "../../store/store.ts"
import { Pages } from "../pages.ts"
import type { LaneTime, Proposer } from "./proposer.ts"

// Only free lanes: a claimed lane learns from its worker, which is told of every lane found. A lane that is paused or disabled is woken when that ends.
const correct = (name: string, locked: string): Statement => ({
  name,
  text: `
WITH late AS (
  SELECT l.id, greatest(d.due_at, e.hold_until, e.breaker_until, $3::bigint) AS due_at
    FROM ${patience(2000)} CROSS JOIN unnest($1::text[], $2::bigint[]) AS d(id, due_at)
    JOIN lanes l ON l.id = d.id AND l.owner = 0
    LEFT JOIN endpoints e ON e.id = d.id AND e.deleted_at IS NULL
   WHERE l.ready_at > greatest(d.due_at, e.hold_until, e.breaker_until, $3) AND (e.disabled OR e.paused) IS NOT TRUE
   ORDER BY l.id FOR NO KEY UPDATE OF l ${locked}
)
UPDATE lanes SET ready_at = late.due_at FROM late WHERE lanes.id = late.id RETURNING lanes.id, lanes.app_id, lanes.transport, lanes.ready_at`,
})
/** Leaves locked lanes to the next sweep. */
const CORRECT_FREE = correct("lanes.correct", "SKIP LOCKED")
/** After the clock was set the next sweep may be far away, so locked lanes are waited for. */
const CORRECT_ALL = correct("lanes.correct-all", "")

export class Sweep {
  readonly #database: Database
  readonly #pages: Pages
  readonly #proposer: Proposer | null

  constructor(database: Database, store: Pick<Store, "scanLanes">, proposer: Proposer | null) {
    this.#database = database
    this.#pages = new Pages(store)
    this.#proposer = proposer
  }

  async run(
    whole: boolean,
    now: number,
    at: Moment | undefined,
    found?: (lanes: readonly LaneWake[]) => void,
  ): Promise<void> {
    await this.#pages.read(whole, at, async (lanes) => {
      found?.(lanes)
      const ids = lanes.map(({ endpointId }) => endpointId)
      const dues = lanes.map(({ dueAt }) => dueAt)
      const corrected = await this.#database.runCalmly(whole ? CORRECT_ALL : CORRECT_FREE, [ids, dues, now])
      this.#proposer?.learn(corrected.map(toLaneTime), now)
    })
  }
}

function toLaneTime({ id, app_id, transport, ready_at }: Row): LaneTime {
  return {
    endpointId: id as string,
    appId: app_id as string,
    transport: transport as string,
    dueAt: ready_at as number,
    isOurs: false,
  }
}

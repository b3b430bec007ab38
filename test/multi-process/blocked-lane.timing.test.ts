/** A lane that is blocked with hundreds of thousands of due rows, in `npm run soak` a million, costs the others nothing: neither rows that are read, nor time. */
import type pg from "pg"
import { expect, onTestFinished, test } from "vitest"
import { PostgresSchedule } from "../../src/schedule/postgres/postgres.ts"
import { laneFetch, lanesOf } from "../../src/store/conformance.ts"
import { FETCH, fetchValues } from "../../src/store/postgres/fetch.ts"
import { openPostgresStore } from "../../src/store/postgres/store.ts"
import { rounds } from "../support/length.ts"
import { migratedDatabase } from "../support/migrated-database.ts"
import { open, Site } from "./site.ts"

const FEW = 1000
const MANY = rounds(200_000, 1_000_000)
const TIMES = 200
/** Dead versions of a lane's row, which are there until they are cleaned up. */
const CHANCE_ROWS = 20

/** Rows that are due now, for one endpoint: what sends write, without their messages. */
const FLOOD = `
  INSERT INTO webhook_deliveries_live (id, app_id, webhook_id, message_id, event_type, target_url, next_retry_at, received_at, age_from)
  SELECT 'dlv_' || i, e.app_id, e.id, 'msg_' || i, 'a', e.url, 0, 0, 0
    FROM endpoints e, generate_series(1, $1::int) i WHERE e.uid = 'blocked'`

interface Plan {
  readonly "Relation Name"?: string
  readonly "Actual Rows": number
  readonly "Actual Loops": number
  readonly "Rows Removed by Filter"?: number
  readonly Plans?: readonly Plan[]
}

function rowsRead(plan: Plan): number {
  const each = plan["Actual Rows"] + (plan["Rows Removed by Filter"] ?? 0)
  const own = plan["Relation Name"] === undefined ? 0 : each * plan["Actual Loops"]
  return own + (plan.Plans ?? []).reduce((sum, part) => sum + rowsRead(part), 0)
}

/** EXPLAIN does not show the rows that the function's statements read; this transaction's counters do. */
const TOUCHED = `
  SELECT sum(pg_stat_get_xact_tuples_returned(oid) + pg_stat_get_xact_tuples_fetched(oid))::int AS rows
    FROM pg_class WHERE relname ~ '^(lanes|lane_wakes|workers|webhook_deliveries_live|deliveries_live)'`
const WAKE = "UPDATE lanes SET ready_at = 0 WHERE id = $1"

const ask = (endpointId: string, token: number) =>
  laneFetch(endpointId, token, { limit: 64, starting: 32, retryShare: 12 })

/** How many rows a claim of the lane and a fetch for it read. Both are taken back. */
async function countRows(client: pg.Client, endpointId: string): Promise<{ claim: number; fetch: number }> {
  await client.query("BEGIN")
  try {
    await client.query(WAKE, [endpointId])
    const { rows: workers } = await client.query(
      "SELECT worker FROM posthorn_renew(0, 'test', interval '1 hour')",
    )
    const before = (await client.query(TOUCHED)).rows[0].rows as number
    const { rows } = await client.query(
      "SELECT * FROM posthorn_claim_round($1, 0, $2, 10, '{}', '{}', '{}', '{}', 0, '{http}', '{}')",
      [workers[0].worker, Date.now()],
    )
    expect(rows[0].claimed).toEqual([endpointId])
    const claim = ((await client.query(TOUCHED)).rows[0].rows as number) - before
    const { want, token } = ask(endpointId, Number(rows[0].tokens[0]))
    const session = { handed: [], fetched: [] }
    const lanes = [{ ...want, endpointId, token, knownVersion: null, isOpen: false, session }]
    const text = `EXPLAIN (ANALYZE, FORMAT JSON) ${FETCH.text}`
    const now = Date.now()
    const explained = await client.query({ text, values: fetchValues(lanes, { now, wall: now }) })
    return { claim, fetch: rowsRead(explained.rows[0]["QUERY PLAN"][0].Plan) }
  } finally {
    await client.query("ROLLBACK")
  }
}

test("claim and fetch for another lane read the same rows and take the same time", {
  timeout: 120_000,
}, async () => {
  const url = await migratedDatabase()
  const site = await Site.open({ store: url })
  await site.endpoint("blocked")
  const endpointId = await site.endpoint("other")
  await site.sender.endpoints.pause("acme", "blocked")
  const client = await site.client()
  let sent = 0

  const measure = async () => {
    for (let n = 0; n < 20; n++, sent++) await site.send("other", n)
    const store = await openPostgresStore({ url, name: "test" })
    const schedule = new PostgresSchedule({
      database: store.database,
      store,
      random: Math.random,
      events: { emit() {} },
      name: "test",
    })
    onTestFinished(() => store.close())
    schedule.serve({ transports: ["http"], endpoints: [] })
    await schedule.start({ due() {}, lost() {} })
    const times: number[] = []
    for (let n = 0; n < TIMES; n++) {
      await client.query(WAKE, [endpointId])
      const now = Date.now()
      const from = performance.now()
      const [claim] = await schedule.claim(10, now)
      const work = await lanesOf(store).fetch(ask(endpointId, claim!.token), now)
      times.push(performance.now() - from)
      expect(work.deliveries).toHaveLength(20)
      await lanesOf(store).giveBack(
        work.deliveries.map((delivery) => ({ ...claim!, delivery, attempt: null })),
      )
      await schedule.release(claim!, null, now)
    }
    const rows = await countRows(client, endpointId)
    await schedule.stop()
    await store.close()
    return { rows, medianMs: times.sort((a, b) => a - b)[TIMES / 2]! }
  }
  /** A worker looks at the blocked lane and releases it: it has no due time then. */
  const block = async (rows: number) => {
    await client.query(FLOOD, [rows])
    await client.query(
      "INSERT INTO lane_wakes (lane_id, due_at) SELECT id, 0 FROM endpoints WHERE uid = 'blocked'",
    )
    const worker = await open({ store: url })
    await site.receiver.arrived("/other", sent)
    await worker.engine!.whenIdle()
    await worker.close()
    // As autovacuum does at a time of its own choice.
    await client.query("VACUUM ANALYZE")
  }

  await block(FEW)
  const before = await measure()
  await block(MANY - FEW)
  const after = await measure()
  expect(after.rows.claim).toBeLessThan(before.rows.claim + CHANCE_ROWS)
  expect(after.rows.fetch).toBeLessThan(before.rows.fetch + CHANCE_ROWS)
  expect(after.medianMs).toBeLessThan(before.medianMs * 1.5)
})

import { expect, test } from "vitest"
import { LaneWorld } from "../../../test/support/lanes.ts"
import { transportOf } from "../../core/transport-kind.ts"
import { lane, scheduleConformance } from "../conformance.ts"
import { sharedScheduleConformance } from "./conformance.ts"

scheduleConformance("postgres", async () => {
  const world = await LaneWorld.create()
  const { schedule } = await world.worker()
  return {
    schedule,
    wake: (lanes) => world.wake(lanes, schedule),
    waiting: (lanes) => {
      world.waiting = [...lanes]
    },
    changeUrl: (id, url) => world.changeUrl(id, url, schedule),
  }
})

sharedScheduleConformance("postgres")

/** Rows of lanes and its indexes that this transaction has read. */
const ROWS_READ = `
  SELECT sum(pg_stat_get_xact_tuples_returned(oid) + pg_stat_get_xact_tuples_fetched(oid))::int AS rows
    FROM pg_class WHERE relname ~ '^lanes'`
const CLAIM =
  "SELECT claimed FROM posthorn_claim_round($1, 0, 1, 10, '{}', '{}', '{}', NULL, 0, '{http}', '{named}')"

test("a claim reads no lane of another transport, however many of them are due", async () => {
  const world = await LaneWorld.create()
  await world.worker()
  const [worker] = await world.sql("SELECT id FROM workers")
  await world.sql(
    `INSERT INTO lanes (id, app_id, ready_at, transport)
     SELECT 'ep-' || i, 'app-' || i % 100, i % 2, 'relay' FROM generate_series(1, 100000) i`,
  )
  await world.wake([lane("a"), lane("b"), lane("named", 0, "app", "relay")])
  const read = await world.database.transaction(async (runner) => {
    const run = async (text: string, ...values: unknown[]) =>
      (await runner.run({ name: "", text }, values))[0]!
    const before = (await run(ROWS_READ)).rows as number
    expect(((await run(CLAIM, worker!.id)).claimed as string[]).sort()).toEqual(["a", "b", "named"])
    return ((await run(ROWS_READ)).rows as number) - before
  })
  expect(read).toBeLessThan(60)
})

test("the claim's search is a range of the index lanes_free for each transport", async () => {
  const world = await LaneWorld.create()
  const plan = await world.sql(`
    EXPLAIN SELECT id FROM unnest('{http,relay}'::text[]) AS s(transport) CROSS JOIN LATERAL (
      SELECT id FROM lanes WHERE owner = 0 AND lanes.transport = s.transport AND ready_at <= 5 ORDER BY ready_at LIMIT 10
    ) due`)
  const text = plan.map((row) => row["QUERY PLAN"]).join("\n")
  expect(text).toMatch(
    /Index Scan using lanes_free.*\n\s*Index Cond: \(\(transport = s.transport\) AND \(ready_at <= 5\)\)/,
  )
  expect(text).not.toContain("Sort")
})

test("the database and the program derive the same transport from a URL", async () => {
  const world = await LaneWorld.create()
  const special = ["relay://q", " Relay://x"]
  const others = [
    "http://a",
    "HTTPS://a",
    " https://a",
    "file:///etc/passwd",
    "relayed://x",
    "no scheme",
    "",
    ":x",
  ]
  const urls = [...special, ...others]
  const rows = await world.sql("SELECT posthorn_transport(url) AS kind FROM unnest($1::text[]) AS url", urls)
  expect(rows.map(({ kind }) => kind)).toEqual(urls.map(transportOf))
  expect(special.map(transportOf)).toEqual(["relay", "relay"])
  expect(new Set(others.map(transportOf))).toEqual(new Set(["http"]))
})

import { DatabaseSync } from "node:sqlite"
import { expect, onTestFinished, test } from "vitest"
import { sqliteStage } from "../../../test/support/sqlite-stage.ts"
import { lanesOf } from "../conformance/lanes.ts"
import { laneFetch, NOW, sample, settlement } from "../conformance/samples.ts"
import type { RollupFilter } from "../store.ts"

const TOKEN = 7

/** Claimed deliveries with their settlements, and the database as an operator's connection sees it. */
async function start(count: number) {
  const { path, store, application, endpoint } = await sqliteStage()
  await store.acceptMany(Array.from({ length: count }, () => sample.message(application.id)))
  const { deliveries } = await lanesOf(store).fetch(laneFetch(endpoint.id, TOKEN, { limit: count }), NOW)
  const db = new DatabaseSync(path, { timeout: 5000 })
  onTestFinished(() => db.close())
  const settlements = deliveries.map((one) => settlement(endpoint.id, TOKEN, one, 200))
  const attempts = async () => (await store.sumRollups({}, []))[0]?.attempts ?? 0
  return { store, db, settlements, attempts }
}

test("a settle that fails is in no sum, and the others of its transaction are in it once", async () => {
  const { store, db, settlements, attempts } = await start(6)
  db.exec(`CREATE TRIGGER refuse BEFORE INSERT ON attempts WHEN NEW.url = 'bad'
           BEGIN SELECT RAISE(FAIL, 'refused'); END`)
  // The first time the transaction runs again with a savepoint for each call, the second time it begins with them.
  for (const [from, sum] of [
    [0, 2],
    [3, 4],
  ] as const) {
    const [first, second, third] = settlements.slice(from)
    const bad = { ...second!, attempt: { ...second!.attempt!, url: "bad" } }
    const results = await Promise.allSettled([first!, bad, third!].map((one) => lanesOf(store).settle([one])))
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"])
    expect(await attempts()).toBe(sum)
  }
})

test("sums of one transaction are added to their row once", async () => {
  const { store, db, settlements, attempts } = await start(20)
  db.exec("CREATE TABLE writes (n INTEGER)")
  for (const event of ["INSERT", "UPDATE"])
    db.exec(
      `CREATE TRIGGER on_${event} AFTER ${event} ON attempt_rollups BEGIN INSERT INTO writes VALUES (1); END`,
    )
  const settle = () => lanesOf(store).settle(settlements.splice(0, 10))
  await Promise.all([settle(), settle()])
  expect(await attempts()).toBe(20)
  expect(db.prepare("SELECT count(*) AS writes FROM writes").get()).toEqual({ writes: 1 })
})

test("an attempt that is not kept, because its delivery is gone, is in no sum", async () => {
  const { store, db, settlements, attempts } = await start(2)
  db.prepare("DELETE FROM webhook_deliveries WHERE seq = ?").run(settlements[0]!.delivery.seq)
  expect(await lanesOf(store).settle(settlements)).toEqual(["superseded", "applied"])
  expect(await attempts()).toBe(1)
})

test("attempts that a program without ages added may have started at any age", async () => {
  const { store, db, settlements } = await start(2)
  await lanesOf(store).settle(settlements)
  const found = async (filter: RollupFilter) => (await store.sumRollups(filter, []))[0]?.attempts ?? 0
  expect(await found({ maybeOlderThanMs: 1 })).toBe(0)
  db.exec("UPDATE attempt_rollups SET attempts = attempts + 1")
  expect(await found({ maybeOlderThanMs: 1 })).toBe(3)
  expect(await found({ olderThanMs: 0 })).toBe(0)
})

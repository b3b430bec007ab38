import { expect, test } from "vitest"
import { fetchOf, NOW, openStore, stage } from "../../../test/support/postgres-store.ts"
import { cancel, revive } from "../../core/operate.ts"
import { PRESETS } from "../../core/presets.ts"
import { lanesOf, newest, sample, settlement } from "../conformance.ts"
import { DAY_MS } from "./partitions.ts"

const page = newest(1000)
const TOMORROW = Math.ceil(NOW / DAY_MS) * DAY_MS
const DAY = TOMORROW / DAY_MS
/** Tables of the two days that the tests use, without those created ahead. */
const counts = `
  SELECT (SELECT count(*)::int FROM webhook_deliveries) AS deliveries, (SELECT count(*)::int FROM attempts) AS attempts,
         (SELECT count(*)::int FROM messages) AS messages, (SELECT count(*)::int FROM meta WHERE key ~ 'aside') AS halfway,
         (SELECT array_agg(relname::text ORDER BY relname) FROM pg_class WHERE relkind = 'r'
             AND substring(relname from '(?:done|attempts|aside)_([0-9]+)$')::int <= ${DAY + 1}) AS tables`

test("a day is removed as a whole, its messages in steps, without touching other days", async () => {
  const { store, query, send, attempt } = await stage()
  await send(25)
  await attempt(200, TOMORROW)
  await send(5)
  await attempt(200, TOMORROW + DAY_MS)
  expect(await store.purge(TOMORROW - 1, 10)).toBe(0)
  expect(await store.purge(TOMORROW, 10)).toBe(10)
  expect(await store.listDeliveries({}, page)).toHaveLength(5)
  expect(await store.purge(TOMORROW, 10)).toBe(10)
  expect(await store.purge(TOMORROW, 10)).toBe(5)
  expect(await store.purge(TOMORROW, 10)).toBe(0)
  expect(await query(counts)).toEqual([
    {
      deliveries: 5,
      attempts: 5,
      messages: 5,
      halfway: 0,
      tables: [`attempts_${DAY + 1}`, `webhook_deliveries_done_${DAY + 1}`],
    },
  ])
})

test("a purge that reached its limit exactly is followed by an empty one", async () => {
  const { store, send, attempt } = await stage()
  await send(10)
  await attempt(200, TOMORROW)
  expect(await store.purge(TOMORROW, 10)).toBe(10)
  expect(await store.purge(TOMORROW, 10)).toBe(0)
})

test("an interrupted purge is finished by the next, at every point of interruption", async () => {
  const { url, store, query, send, attempt } = await stage()
  await send(20)
  await attempt(200, TOMORROW)
  await send(20)
  await attempt(200, TOMORROW + DAY_MS)
  expect(await store.purge(TOMORROW, 10)).toBe(10)
  await store.kill()
  await query(`ALTER TABLE webhook_deliveries_done DETACH PARTITION webhook_deliveries_done_${DAY + 1}`)
  await query(`ALTER TABLE attempts DETACH PARTITION attempts_${DAY + 1}`)
  const again = await openStore(url)
  expect(await again.purge(TOMORROW, 100)).toBe(30)
  expect(await query(counts)).toEqual([{ deliveries: 0, attempts: 0, messages: 0, halfway: 0, tables: null }])
})

test("a day that a long read has locked is left for the next purge", async () => {
  const { url, store, client, query, send, attempt } = await stage()
  await send(3)
  await attempt(200, TOMORROW)
  await query("BEGIN")
  await query("SELECT count(*) FROM webhook_deliveries")
  expect(await store.purge(TOMORROW, 10)).toBe(0)
  const other = await openStore(url)
  await send(1)
  expect(await attempt(200, TOMORROW + DAY_MS)).toMatchObject([{ status: "delivered" }])
  await client.query("COMMIT")
  // The process with the lock does it; the others have nothing to do.
  await expect.poll(() => other.purge(TOMORROW, 10)).toBe(3)
  expect(await query(counts)).toMatchObject([{ deliveries: 1, attempts: 1, messages: 1 }])
})

test("concurrent purges remove everything once", async () => {
  const { url, store, query, send, attempt } = await stage()
  await send(30)
  await attempt(200, TOMORROW)
  const stores = [store, ...(await Promise.all([openStore(url), openStore(url), openStore(url)]))]
  let removed = 0
  for (let round = 0; round < 20 && removed < 30; round++)
    for (const count of await Promise.all(stores.map((one) => one.purge(TOMORROW, 7)))) removed += count
  expect(removed).toBe(30)
  expect(await query(counts)).toMatchObject([{ deliveries: 0, attempts: 0, messages: 0 }])
})

test("a message is kept while any delivery refers to it", async () => {
  const { store, query, application, endpoint, send, attempt } = await stage()
  const other = sample.endpoint(application.id)
  await store.createEndpoint(other)
  await send(1)
  await attempt(200, TOMORROW, endpoint)
  await attempt(200, TOMORROW + DAY_MS, other)
  expect(await store.purge(TOMORROW, 10)).toBe(1)
  expect(await query(counts)).toMatchObject([{ deliveries: 1, attempts: 1, messages: 1 }])
  expect(await store.purge(TOMORROW + DAY_MS, 10)).toBe(1)
  expect(await query(counts)).toMatchObject([{ deliveries: 0, attempts: 0, messages: 0 }])
})

test("the partition of a dropped day can be created again, in any process", async () => {
  const { url, store, send, attempt } = await stage()
  const other = await openStore(url)
  const finish = async () => {
    await send(1)
    return attempt(200, TOMORROW)
  }
  await finish()
  expect(await other.purge(TOMORROW, 10)).toBe(1)
  expect(await finish()).toMatchObject([{ status: "delivered" }])
  expect(await store.purge(TOMORROW, 10)).toBe(1)
  expect(await finish()).toMatchObject([{ status: "delivered" }])
  expect(await other.purge(TOMORROW, 10)).toBe(1)
})

test("a revived delivery takes its attempts along and outlives its day", async () => {
  const { store, query, application, send, attempt } = await stage()
  await send(2)
  const [kept, reset] = await attempt(500, TOMORROW)
  const expected = { expectedStatus: "dead", expectedAttemptCount: 1 } as const
  expect(
    await store.amendIfUnchanged([{ seq: kept!.seq, ...expected, change: revive(kept!, NOW - 1) }]),
  ).toEqual([true])
  await query("UPDATE webhook_deliveries SET status = 'pending', attempt_count = 0 WHERE id = $1", [
    reset!.id,
  ])
  expect(await store.purge(TOMORROW, 10)).toBe(0)
  for (const { id } of [kept!, reset!]) {
    expect(await store.getDelivery(application.orgId, id)).toMatchObject({
      status: "pending",
      attemptCount: 0,
    })
    expect(await store.listAttempts({ deliveryId: id }, page)).toHaveLength(1)
  }
  expect(await attempt(200, TOMORROW + DAY_MS)).toHaveLength(2)
  expect(await store.purge(TOMORROW + DAY_MS, 10)).toBe(2)
  expect(await query(counts)).toMatchObject([{ deliveries: 0, attempts: 0, messages: 0 }])
})

test("an attempt that ended after its delivery was called off is removed with it", async () => {
  const { store, query, endpoint, send } = await stage()
  await send(1)
  const work = await lanesOf(store).fetch(fetchOf(endpoint), NOW)
  const [row] = await store.listDeliveries({ live: true }, page)
  const change = { ...cancel(row!, PRESETS.standard, NOW), purgeAt: TOMORROW }
  await store.amendIfUnchanged([
    { seq: row!.seq, expectedStatus: "pending", expectedAttemptCount: 0, change },
  ])
  expect(await lanesOf(store).settle([settlement(endpoint.id, 1, work.deliveries[0]!, 200)])).toEqual([
    "superseded",
  ])
  expect(await store.listAttempts({ deliveryId: row!.id }, page)).toHaveLength(1)
  expect(await store.purge(TOMORROW, 10)).toBe(1)
  expect(await query(counts)).toMatchObject([{ deliveries: 0, attempts: 0, messages: 0 }])
})

test("keys of three generations are kept, and older generations dropped", async () => {
  const { store, query, send } = await stage()
  const hour = 3_600_000
  for (const hours of [0, 12, 24, 36])
    await send(1, {
      receivedAt: NOW + hours * hour,
      idempotency: { key: Buffer.alloc(16, hours), digest: Buffer.alloc(16) },
    })
  // Without the one that is created ahead.
  const generations = `
    SELECT count(*)::int AS n FROM pg_inherits
     WHERE inhparent = 'idempotency'::regclass
       AND substring(inhrelid::regclass::text from '[0-9]+$')::int <= ${Math.floor((NOW + 36 * hour) / (12 * hour))}`
  expect(await query(generations)).toEqual([{ n: 4 }])
  await store.purge(NOW + 36 * hour, 10)
  expect(await query(generations)).toEqual([{ n: 3 }])
})

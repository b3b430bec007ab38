/** The index of waiting rows has two parts: a row is found in either, also after a crash or an operator's change. */
import { DatabaseSync } from "node:sqlite"
import { expect, test } from "vitest"
import { sqliteStage } from "../../../test/support/sqlite-stage.ts"
import { laneFetch, lanesOf, ORG, sample, settlement } from "../conformance.ts"
import { MIGRATIONS } from "./schema.ts"

const NOW = 1_900_000_000_000

async function stage(messages: number, more: Parameters<typeof sqliteStage>[0] = {}) {
  const { path, store, application, endpoint } = await sqliteStage(more)
  const send = () => store.acceptMany([sample.message(application.id, { receivedAt: NOW })])
  for (let i = 0; i < messages; i++) await send()
  const sql = (text: string) => {
    const db = new DatabaseSync(path)
    const rows = db.prepare(text).all()
    db.close()
    return rows
  }
  const fetch = async (limit: number, now = NOW) => {
    const work = await lanesOf(store).fetch(laneFetch(endpoint.id, 7, { limit }), now)
    return { ...work, seqs: work.deliveries.map(({ seq }) => seq) }
  }
  /** Sends to an open lane, and returns the handed delivery. */
  const hand = async () => {
    await lanesOf(store).fetch(laneFetch(endpoint.id, 7, { handoffPlaces: 10 }), NOW)
    await send()
    return lanesOf(store).of({ endpointId: endpoint.id, token: 7 }).handedOver[0]!
  }
  return { store, application, endpoint, hand, sql, fetch }
}

test("a handed delivery is in a part of its own until its retry", async () => {
  const { store, endpoint, hand, sql } = await stage(0)
  const handed = await hand()
  const part = () => sql("SELECT handed FROM webhook_deliveries")
  expect(part()).toEqual([{ handed: 1 }])
  expect(await lanesOf(store).settle([settlement(endpoint.id, 7, handed, 500)])).toEqual(["applied"])
  expect(part()).toEqual([{ handed: 0 }])
})

test("a handed delivery that is revived waits with the others", async () => {
  const { store, endpoint, hand, sql } = await stage(0)
  await lanesOf(store).settle([settlement(endpoint.id, 7, await hand(), 200)])
  const row = () => sql("SELECT status, handed FROM webhook_deliveries")
  expect(row()).toEqual([{ status: "delivered", handed: 1 }])
  sql("UPDATE webhook_deliveries SET status = 'pending'")
  expect(row()).toEqual([{ status: "pending", handed: 0 }])
})

test("the oldest delivery of both parts goes first", async () => {
  const { fetch, sql } = await stage(6)
  sql("UPDATE webhook_deliveries SET handed = 1 WHERE seq IN (2, 3, 6)")
  expect(await fetch(4)).toMatchObject({ seqs: [1, 2, 3, 4] })
  expect(await fetch(4)).toMatchObject({ seqs: [5, 6], nextDueAt: null })
})

test.each([0, 1])("the next due time is read from part %i", async (part) => {
  const { fetch, sql } = await stage(3)
  sql(`UPDATE webhook_deliveries SET handed = ${part}, next_retry_at = ${NOW + 5} WHERE seq = 2`)
  sql(`UPDATE webhook_deliveries SET handed = ${1 - part}, next_retry_at = ${NOW + 9} WHERE seq = 3`)
  expect(await fetch(4)).toMatchObject({ seqs: [1], nextDueAt: NOW + 5 })
})

test.each([0, 1])("deliveries of part %i join an ordered lane", async (part) => {
  const { fetch, sql } = await stage(1, { ordered: true })
  sql(`UPDATE webhook_deliveries SET handed = ${part}, deferred = 1, next_retry_at = ${NOW + 5}`)
  expect(await fetch(1)).toMatchObject({ seqs: [], nextDueAt: NOW + 5 })
  expect(await fetch(1, NOW + 5)).toMatchObject({ seqs: [1] })
})

test("lanes are found, listed and counted by both parts", async () => {
  const { store, application, endpoint, sql } = await stage(3)
  const other = sample.endpoint(application.id)
  await store.createEndpoint(other)
  sql(`UPDATE webhook_deliveries SET webhook_id = '${other.id}', handed = 1 WHERE seq = 3`)
  sql("UPDATE webhook_deliveries SET handed = 1 WHERE seq = 2")
  const lanes = [endpoint.id, other.id].sort()
  expect((await store.scanLanes(null, 10)).map(({ endpointId }) => endpointId)).toEqual(lanes)
  expect((await store.scanLanes(null, 1)).map(({ endpointId }) => endpointId)).toEqual(lanes.slice(0, 1))
  expect((await store.scanLanes(lanes[0]!, 10)).map(({ endpointId }) => endpointId)).toEqual(lanes.slice(1))
  const page = { limit: 10, order: "ascending", from: null, back: false } as const
  const waiting = (await store.listLanes({ orgId: ORG }, page)).map((lane) => [lane.endpointId, lane.waiting])
  expect(Object.fromEntries(waiting)).toEqual({ [endpoint.id]: 2, [other.id]: 1 })
  expect(await store.countDeliveries({ endpointId: endpoint.id, live: true })).toBe(2)
  expect(await store.countDeliveries({ appId: application.id, live: true })).toBe(3)
})

test("a file without parts is migrated, with its waiting deliveries", async () => {
  const before = new DatabaseSync(":memory:")
  for (const sql of MIGRATIONS.slice(0, 2)) before.exec(sql)
  before.exec(
    "INSERT INTO webhook_deliveries (id, app_id, webhook_id, message_id, event_type, target_url, received_at) VALUES ('d', 'a', 'e', 'm', 't', 'u', 1)",
  )
  before.exec(MIGRATIONS[2]!)
  expect(
    before
      .prepare(
        "SELECT id FROM webhook_deliveries INDEXED BY deliveries_live WHERE status IN ('pending', 'failed') AND handed = 0 AND webhook_id = 'e'",
      )
      .all(),
  ).toEqual([{ id: "d" }])
  before.close()
})

/** Adding deliveries while others add them, too, or retention removes their message. */
import { expect, test } from "vitest"
import { connect, fetchOf, NOW, openStore, stage, waiting } from "../../../test/support/postgres-store.ts"
import { AT, lanesOf, newest, sample } from "../conformance.ts"
import { DAY_MS } from "./partitions.ts"

const TOMORROW = Math.ceil(NOW / DAY_MS) * DAY_MS

/** A second endpoint, created after the messages. */
async function withLatecomer(messages = 1) {
  const staged = await stage()
  const { store, application, send } = staged
  await send(messages)
  const latecomer = sample.endpoint(application.id)
  await store.createEndpoint(latecomer)
  const sent = await store.listMessages({ appId: application.id }, newest(messages), false)
  const additions = sent.map(({ id }) => ({ messageId: id, endpointId: latecomer.id, manual: true }))
  return { ...staged, latecomer, additions, messageId: sent[0]!.id }
}

test("of many processes that add the same deliveries, one adds each", async () => {
  const { url, store, application, latecomer, additions, messageId } = await withLatecomer(5)
  const stores = await Promise.all(Array.from({ length: 6 }, () => openStore(url)))
  const results = await Promise.all(
    stores.map((one, i) => one.addIfMissing(i % 2 === 0 ? additions : additions.toReversed(), AT)),
  )
  expect(results.flat().filter(Boolean)).toHaveLength(5)
  expect(await store.listDeliveries({ endpointId: latecomer.id }, newest(99))).toHaveLength(5)
  expect(await store.getMessage(application.id, messageId)).toMatchObject({ matched: 2 })
})

test("a delivery that a call names twice is added once", async () => {
  const { store, additions } = await withLatecomer()
  expect(await store.addIfMissing([...additions, ...additions], AT)).toEqual([true, false])
})

test("an added delivery wakes its lane, and is sent", async () => {
  const { store, query, latecomer, additions, messageId } = await withLatecomer()
  await query("DELETE FROM lane_wakes")
  await store.addIfMissing(additions, { now: NOW + 5, wall: NOW + 5 })
  expect(await query("SELECT lane_id, due_at::bigint - $1::bigint AS late FROM lane_wakes", [NOW])).toEqual([
    { lane_id: latecomer.id, late: "5" },
  ])
  const work = await lanesOf(store).fetch(fetchOf(latecomer), NOW + 5)
  expect(work.deliveries).toMatchObject([{ messageId, manual: true, attemptCount: 0 }])
})

test("a message that gets a delivery while its day is purged is kept", async () => {
  const { url, store, client, application, attempt, additions, messageId } = await withLatecomer()
  await attempt(200, TOMORROW)
  const watcher = await connect(url)
  const adder = await openStore(url)
  // The wakes are written last: the adder has locked the message, and has not committed.
  await client.query("BEGIN; LOCK TABLE lane_wakes IN EXCLUSIVE MODE")
  const adding = adder.addIfMissing(additions, AT)
  await waiting(watcher, 1)
  const purging = store.purge(TOMORROW, 10)
  await waiting(watcher, 2)
  await client.query("COMMIT")
  expect(await adding).toEqual([true])
  expect(await purging).toBe(1)
  expect(await store.getMessage(application.id, messageId)).toMatchObject({ matched: 2 })
})

test("an unmatched message that gets a delivery while it is purged is kept", async () => {
  const { url, store, client, application, endpoint } = await stage({ eventTypes: ["other"] })
  const message = sample.message(application.id)
  await store.acceptMany([message])
  const watcher = await connect(url)
  const adder = await openStore(url)
  await client.query("BEGIN; LOCK TABLE lane_wakes IN EXCLUSIVE MODE")
  const adding = adder.addIfMissing([{ messageId: message.id, endpointId: endpoint.id, manual: false }], AT)
  await waiting(watcher, 1)
  const purging = store.purge(message.purgeUnmatchedAt, 10)
  await waiting(watcher, 2)
  await client.query("COMMIT")
  expect(await adding).toEqual([true])
  expect(await purging).toBe(0)
  expect(await store.getMessage(application.id, message.id)).toMatchObject({ matched: 1 })
})

test("nothing is added to a message that retention has just removed", async () => {
  const { url, store, client, application, endpoint } = await stage({ eventTypes: ["other"] })
  const message = sample.message(application.id)
  await store.acceptMany([message])
  const watcher = await connect(url)
  await client.query("BEGIN")
  await client.query("DELETE FROM messages")
  const adder = await openStore(url)
  const adding = adder.addIfMissing([{ messageId: message.id, endpointId: endpoint.id, manual: false }], AT)
  await waiting(watcher, 1)
  await client.query("COMMIT")
  expect(await adding).toEqual([false])
  expect(await store.countDeliveries({})).toBe(0)
})

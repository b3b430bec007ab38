import { getRandomValues } from "node:crypto"
import { DatabaseSync } from "node:sqlite"
import { expect, onTestFinished, test, vi } from "vitest"
import { sqliteStage } from "../../../test/support/sqlite-stage.ts"
import { createIds } from "../../core/ids.ts"
import { lanesOf } from "../conformance/lanes.ts"
import { AT, laneFetch, NOW, newest, sample, settlement } from "../conformance/samples.ts"
import type { Endpoint } from "../store.ts"
import { Connection } from "./connection.ts"
import { Context } from "./context.ts"
import { Inserts } from "./inserts.ts"
import { migrate } from "./migrate.ts"
import { OPERATIONS } from "./operations.ts"
import { openSqliteStore } from "./store.ts"

const TOKEN = 7

test("any number of rows is written once, in order", () => {
  const connection = new Connection(":memory:")
  onTestFinished(() => connection.close())
  connection.db.exec("CREATE TABLE t (seq INTEGER PRIMARY KEY, a INTEGER, b TEXT)")
  const inserts = new Inserts(connection, "INSERT INTO t", "a, b")
  let written = 0
  for (const count of [0, 1, 3, 4, 15, 16, 17, 59]) {
    for (let i = 0; i < count; i++) inserts.add(++written, `${written}`)
    inserts.flush()
    const rows = connection.db.prepare("SELECT seq, a, b FROM t ORDER BY seq").all()
    expect(rows.map(({ seq, a, b }) => [seq, a, b])).toEqual(
      Array.from({ length: written }, (_, i) => [i + 1, i + 1, `${i + 1}`]),
    )
  }
  expect(() => inserts.add(0)).toThrow("1 values for 2 columns")
  inserts.add(0, "dropped")
  inserts.drop()
  inserts.flush()
  expect(connection.db.prepare("SELECT count(*) AS rows FROM t").get()).toEqual({ rows: written })
})

test("rows that cannot be written are kept until dropped; a large batch is written early", () => {
  const connection = new Connection(":memory:")
  onTestFinished(() => connection.close())
  connection.db.exec("CREATE TABLE t (a INTEGER PRIMARY KEY)")
  const inserts = new Inserts(connection, "INSERT INTO t", "a")
  const written = () => connection.db.prepare("SELECT count(*) AS rows FROM t").get()!.rows
  inserts.add(1)
  inserts.add(1)
  expect(() => inserts.flush()).toThrow("UNIQUE")
  expect(inserts.isEmpty).toBe(false)
  inserts.drop()
  expect(inserts.isEmpty).toBe(true)
  const before = written() as number
  for (let i = 0; i < 20_000; i++) inserts.add(100 + i)
  expect(written()).toBe(before + 16_384)
})

async function start(more: Partial<Endpoint> = {}) {
  const stage = await sqliteStage(more)
  const { store, application } = stage
  const send = (more = {}) => store.acceptMany([sample.message(application.id, { receivedAt: NOW, ...more })])
  return { ...stage, send }
}

test("a call sees messages of earlier calls of its tick, and none of later calls", async () => {
  const { store, endpoint, send } = await start()
  const [, first, , second] = await Promise.all([
    send(),
    lanesOf(store).fetch(laneFetch(endpoint.id, TOKEN), NOW),
    send(),
    lanesOf(store).fetch(laneFetch(endpoint.id, TOKEN, { limit: 9 }), NOW),
    send(),
  ])
  expect(first.deliveries.map(({ seq }) => seq)).toEqual([1])
  expect(second.deliveries.map(({ seq }) => seq)).toEqual([2])
})

test("a key that is repeated in one tick gets the first result", async () => {
  const { send } = await start()
  const idempotency = { key: Buffer.alloc(16, 9), digest: Buffer.alloc(16, 2) }
  const [[first], [again]] = await Promise.all([
    send({ idempotency, receivedAt: NOW - 5 }),
    send({ idempotency }),
  ])
  expect(again).toMatchObject({
    messageId: first!.messageId,
    receivedAt: NOW - 5,
    matched: 1,
    duplicate: true,
  })
})

test("numbers of deliveries follow those that were added in the same tick", async () => {
  const { store, application, endpoint, send } = await start()
  const messageId = (await send())[0]!.messageId
  const late = sample.endpoint(application.id, { eventTypes: ["none.of.these"] })
  await store.createEndpoint(late)
  await Promise.all([
    send(),
    store.addIfMissing([{ messageId, endpointId: late.id, manual: true }], AT),
    send(),
  ])
  const rows = await store.listDeliveries({}, { ...newest(9), order: "ascending" })
  expect(rows.map(({ seq, endpointId }) => [seq, endpointId])).toEqual([
    [1, endpoint.id],
    [2, endpoint.id],
    [3, late.id],
    [4, endpoint.id],
  ])
})

test("attempts of one tick are written with their deliveries' ids; without its delivery an attempt is not kept", async () => {
  const { path, store, endpoint, send } = await start()
  await Promise.all(Array.from({ length: 20 }, () => send()))
  const work = await lanesOf(store).fetch(laneFetch(endpoint.id, TOKEN, { limit: 20 }), NOW)
  const db = new DatabaseSync(path)
  db.prepare("DELETE FROM webhook_deliveries WHERE seq = ?").run(work.deliveries[3]!.seq)
  db.close()
  const results = await lanesOf(store).settle(
    work.deliveries.map((delivery, i) => settlement(endpoint.id, TOKEN, delivery, i % 2 ? 500 : 200)),
  )
  expect(results).toEqual(work.deliveries.map((_, i) => (i === 3 ? "superseded" : "applied")))
  const attempts = await store.listAttempts(
    { endpointId: endpoint.id },
    { ...newest(99), order: "ascending" },
  )
  const kept = work.deliveries.filter((_, i) => i !== 3)
  expect(attempts.map(({ deliveryId, messageId }) => [deliveryId, messageId])).toEqual(
    kept.map(({ id, messageId }) => [id, messageId]),
  )
})

/** Number of messages and deliveries after all batched rows are written. */
async function counted({ store, application }: Awaited<ReturnType<typeof start>>) {
  await store.changedOutside()
  const messages = await store.listMessages({ appId: application.id }, newest(99), false)
  return [messages.length, (await store.listDeliveries({}, newest(99))).length]
}

const key = (of: number) => ({ key: Buffer.alloc(16, of), digest: Buffer.alloc(16, 1) })

test.each([
  ["a priority that an ordered endpoint refuses", { priority: "high" }],
  ["a key that was used for another message", { idempotency: { ...key(1), digest: Buffer.alloc(16, 2) } }],
  ["an event id that is taken", { eventId: "taken" }],
] as const)("a batch with %s writes nothing, and concurrent sends are written once", async (_what, bad) => {
  const stage = await start({ ordered: true })
  const { path, store, application, send } = stage
  await send({ eventId: "taken", idempotency: key(1) })
  const batch = () => {
    const messages = [{}, {}, {}, {}, {}, bad].map((one) => sample.message(application.id, one as object))
    return store.acceptMany(messages)
  }
  // The second time each call has a savepoint.
  for (const kept of [2, 4]) {
    await expect(batch()).rejects.toThrow()
    const beside = await openSqliteStore({ path, own: false, onLost() {} })
    await beside.acceptMany([sample.message(application.id)])
    await beside.close()
    expect(await counted(stage)).toEqual([kept, kept])
    await send()
    expect(await counted(stage)).toEqual([kept + 1, kept + 1])
  }
})

test("a refused batch closes the open lane, and no delivery counts as sending", async () => {
  const { store, application, endpoint, send } = await start()
  const open = { limit: 10, handoffPlaces: 10 }
  await lanesOf(store).fetch(laneFetch(endpoint.id, TOKEN, open), NOW)
  await send({ eventId: "taken" })
  const batch = [{}, { eventId: "taken" }].map((one) =>
    sample.message(application.id, { receivedAt: NOW, ...one }),
  )
  await expect(store.acceptMany(batch)).rejects.toMatchObject({ code: "conflict" })
  expect((await send())[0]!.lanes).toHaveLength(1)
  const { handedOver } = lanesOf(store).of({ endpointId: endpoint.id, token: TOKEN })
  expect(handedOver.map(({ seq }) => seq)).toEqual([1])
  const work = await lanesOf(store).fetch(laneFetch(endpoint.id, TOKEN, open), NOW)
  expect(work.deliveries.map(({ seq }) => seq)).toEqual([2])
})

test("a large payload is written alone, after the earlier ones in order", () => {
  const connection = new Connection(":memory:")
  onTestFinished(() => connection.close())
  migrate(connection)
  const context = new Context(
    connection,
    createIds((into) => getRandomValues(into)),
  )
  const application = sample.application()
  OPERATIONS.createApplication(context, application)
  const sizes = [10, 20, 30, 50_000, 60_000, 40]
  const prepared = vi.spyOn(connection, "sql")
  const messages = sizes.map((size) => sample.message(application.id, { payload: Buffer.alloc(size, 97) }))
  OPERATIONS.accept(context, messages)
  context.flush()
  const rows = prepared.mock.calls.filter(([text]) => text.startsWith("INSERT OR FAIL INTO messages"))
  expect(rows.map(([text]) => text.split("), (").length)).toEqual([1, 1, 1, 1, 1, 1])
  const kept = connection.db.prepare("SELECT length(payload) AS size FROM messages ORDER BY seq").all()
  expect(kept.map(({ size }) => size)).toEqual(sizes)
})

test("an existing message is refused alone, among concurrent sends and at any place of a batch", async () => {
  const stage = await start()
  const { store, application, send } = stage
  const message = sample.message(application.id, { receivedAt: NOW })
  await store.acceptMany([message])
  const results = await Promise.allSettled([send(), store.acceptMany([message]), send()])
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"])
  expect(await counted(stage)).toEqual([3, 3])
  await send({ eventId: "taken" })
  for (const before of [962, 963, 964]) {
    const batch = [...Array(before).fill({}), { eventId: "taken" }]
    const sent = store.acceptMany(batch.map((one) => sample.message(application.id, one)))
    await expect(sent).rejects.toMatchObject({ code: "conflict", field: "eventId" })
  }
  expect(await counted(stage)).toEqual([4, 4])
})

test("two fetches of a lane in one tick return a delivery once", async () => {
  const { store, endpoint, send } = await start()
  await send()
  const fetch = () => lanesOf(store).fetch(laneFetch(endpoint.id, TOKEN), NOW)
  const work = await Promise.all([fetch(), fetch()])
  expect(work.map(({ deliveries }) => deliveries.length)).toEqual([1, 0])
})

test("an older claim does not settle a delivery that a newer one fetched in the same tick", async () => {
  const { store, endpoint, send } = await start()
  await send()
  const work = await lanesOf(store).fetch(laneFetch(endpoint.id, TOKEN), NOW)
  const [again, [result]] = await Promise.all([
    lanesOf(store).fetch(laneFetch(endpoint.id, TOKEN + 1), NOW),
    lanesOf(store).settle([settlement(endpoint.id, TOKEN, work.deliveries[0]!, 200)]),
  ])
  expect([again.deliveries.length, result]).toEqual([1, "stale"])
})

test("an existing message for one endpoint is refused with a conflict", async () => {
  const { application, endpoint, store } = await start()
  const message = sample.message(application.id, { to: endpoint.id })
  await store.acceptMany([message])
  await expect(store.acceptMany([message])).rejects.toMatchObject({ code: "conflict" })
})

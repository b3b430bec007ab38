/** Live events over HTTP: who sees what, what is missed and how it is told, and readers that are many or do not read. */

import type { Socket } from "node:net"
import { expect, onTestFinished, test } from "vitest"
import { DEFAULT_ORG } from "../../src/core/org.ts"
import type { KeyInput } from "../../src/resources/keys.ts"
import { TestClock } from "../support/clock.ts"
import { settledEvent } from "../support/events.ts"
import { Receiver } from "../support/receiver.ts"
import { Recorder } from "../support/recorder.ts"
import { EventReader } from "./support/event-reader.ts"
import { ApiServer, type ApiServerOptions } from "./support/server.ts"

const DELIVERED = ["delivery.attempt", "delivery.delivered"]

async function start(options: ApiServerOptions = {}) {
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  const server = await ApiServer.start(options)
  const { posthorn, url } = server
  const created = async (uid: string, of = posthorn.tenant(DEFAULT_ORG)) => {
    const { id } = await of.applications.create({ uid, name: uid })
    const endpoint = await of.endpoints.create(uid, { uid: `${uid}-main`, url: receiver.url(`/${uid}`) })
    return { id, endpointId: endpoint.id }
  }
  const open = (query = "", key = server.key, lastEventId?: string) =>
    EventReader.open(url, { query, key, lastEventId })
  const send = async (app: string, tenant = DEFAULT_ORG) =>
    (await posthorn.tenant(tenant).send(app, { eventType: "order.paid", payload: {} })).id
  const key = async (input: Partial<KeyInput> & Pick<KeyInput, "scope">, tenant?: string) => {
    const { keys } = tenant === undefined ? posthorn : posthorn.tenant(tenant)
    return keys.create({ name: "test", ...input })
  }
  /** As if the engine had settled deliveries: without the time that a thousand of them take. */
  const emit = (count: number, error = "", orgId = DEFAULT_ORG) => {
    const { events } = posthorn.context
    for (let n = 0; n < count; n++)
      events.emit({
        ...settledEvent({ status: "dead", deadReason: "gone", errorDetail: error }, null),
        orgId,
      })
  }
  return { server, posthorn, receiver, created, open, send, key, emit }
}

test("attempts and deliveries arrive while they happen, as server-sent events", async () => {
  const { created, open, send } = await start()
  const { id, endpointId } = await created("acme")
  const reader = await open()
  expect(reader.response.headers).toMatchObject({
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
    "access-control-allow-origin": "*",
  })
  const messageId = await send("acme")
  await reader.until(() => reader.events.length === 2)
  expect(reader.kinds).toEqual(DELIVERED)
  expect(reader.events[1]!.data).toMatchObject({
    type: "delivery.delivered",
    app_id: id,
    webhook_id: endpointId,
    message_id: messageId,
    response_status: 200,
  })
  expect(reader.text).toMatch(
    /^retry: 2000\nid: ([0-9a-f]{12}-1)-0\n\nid: \1-1\nevent: delivery.attempt\ndata: \{.*\}\n\nid: \1-2\n/,
  )
})

test("a stream is narrowed by application, endpoint and kind, several of each", async () => {
  const { created, open, send } = await start()
  const apps = { acme: await created("acme"), globex: await created("globex"), other: await created("other") }
  const both = await open("?app_id=acme&app_id=globex&kind=delivery.delivered")
  const endpoint = await open(`?endpoint_id=${apps.globex.endpointId},${apps.other.endpointId}`)
  // An application that is named twice is one.
  const uid = await open(
    `?app_id=acme,${apps.acme.id}&endpoint_id=acme-main&kind=delivery.dead,delivery.attempt`,
  )
  for (const app of ["acme", "globex", "other"]) await send(app)
  await both.until(() => both.events.length === 2)
  await endpoint.until(() => endpoint.events.length === 4)
  await uid.until(() => uid.events.length === 1)
  expect(both.events.map(({ data }) => data.app_id).sort()).toEqual([apps.acme.id, apps.globex.id].sort())
  expect(new Set(endpoint.events.map(({ data }) => data.app_id))).toEqual(
    new Set([apps.globex.id, apps.other.id]),
  )
  expect(uid.kinds).toEqual(["delivery.attempt"])
})

test("what is not known is refused with the parameter", async () => {
  const { server, created } = await start()
  await created("acme")
  for (const [query, status, said] of [
    ["?kind=delivery.lost", 422, /kind.*must be one of delivery\.dead, /s],
    ["?kind=gap", 422, /kind/],
    ["?app_id=nobody", 404, /there is no application \\"nobody/],
    ["?app_id=acme&endpoint_id=nobody", 404, /endpoint/],
    ["?endpoint_id=acme-main", 422, /endpoint_id.*must be an endpoint's id/s],
    [`?endpoint_id=ep_${"a".repeat(27)}`, 404, /endpoint/],
    ["?last_event_id=17", 422, /last_event_id.*must be the id of an event/s],
    ["?color=red", 422, /color.*is not supported/s],
  ] as const) {
    const answer = await server.call("GET", `/events${query}`)
    expect([query, answer.status, answer.text]).toEqual([query, status, expect.stringMatching(said)])
  }
  const header = await server.call("GET", "/events", { headers: { "last-event-id": "x" } })
  expect(header).toMatchObject({ status: 422, body: { detail: [{ loc: ["header", "last-event-id"] }] } })
})

test("a key sees its tenant, an application's key its application, and only the operator the process", async () => {
  const { posthorn, created, open, send, key } = await start()
  const other = posthorn.tenant("org_other")
  const [acme] = [await created("acme"), await created("globex"), await created("acme", other)]
  const operator = await open()
  const reader = await open("", (await key({ scope: "read" })).token)
  const portal = await open(
    "",
    (await key({ scope: "application", appId: "acme", capabilities: ["ViewBase"] })).token,
  )
  const strangersKey = (await key({ scope: "admin" }, "org_other")).token
  const stranger = await open("", strangersKey)
  const change = { since: 1, endpoints: 3, hosts: 3, attempts: 0, isAnswered: false, at: 2 }
  posthorn.context.events.emit({ type: "engine.outage.began", ...change })
  for (const [app, tenant] of [["globex"], ["acme"], ["acme", "org_other"]] as const) await send(app, tenant)
  await operator.until(() => operator.events.length === 5)
  await reader.until(() => reader.events.length === 5)
  await portal.until(() => portal.events.length === 2)
  await stranger.until(() => stranger.events.length === 2)
  expect(operator.kinds.toSorted()).toEqual([...DELIVERED, ...DELIVERED, "engine.outage.began"].toSorted())
  expect(new Set(portal.events.map(({ data }) => data.app_id))).toEqual(new Set([acme.id]))
  expect(new Set(stranger.events.map(({ data }) => data.org_id))).toEqual(new Set(["org_other"]))
  // Nor does a stream that resumes from the buffer, which has the events of all.
  const again = await open("", strangersKey, operator.events[0]!.id.replace(/\d+$/, "0"))
  await again.until(() => again.events.length === 2)
  expect(again.events).toEqual(stranger.events)
  for (const [query, given, status] of [
    ["?app_id=globex", (await key({ scope: "application", appId: "acme" })).token, 404],
    ["?app_id=globex", (await key({ scope: "read", appId: "acme" })).token, 404],
    ["", "ph_nobody", 401],
  ] as const)
    expect((await open(query, given)).response.statusCode).toBe(status)
})

test("a stream that was cut resumes without loss and without duplicates", async () => {
  const { created, open, send } = await start()
  await created("acme")
  const sent: string[] = []
  const seen: string[] = []
  let lastEventId: string | undefined
  for (let round = 0; round < 4; round++) {
    const [query, header] = round % 2 === 0 ? ["", lastEventId] : [`?last_event_id=${lastEventId}`, undefined]
    const reader = await open(query, undefined, header)
    const wanted = sent.length
    sent.push(await send("acme"), await send("acme"))
    await reader.until(() => seen.length + reader.events.length > 2 * wanted)
    reader.cut()
    await reader.closed
    sent.push(await send("acme"))
    seen.push(...reader.events.map(({ id }) => id))
    lastEventId = reader.lastEventId
  }
  const last = await open("", undefined, lastEventId)
  await last.until(() => seen.length + last.events.length === 2 * sent.length)
  seen.push(...last.events.map(({ id }) => id))
  const prefix = seen[0]!.replace(/\d+$/, "")
  expect(seen).toEqual(Array.from({ length: 2 * sent.length }, (_, n) => `${prefix}${n + 1}`))
})

test("events that the buffer no longer has are a gap, and those after it follow", async () => {
  const { created, open, emit, key } = await start()
  await created("acme")
  const reader = await open()
  emit(1)
  await reader.until(() => reader.events.length === 1)
  reader.cut()
  emit(20_100)
  const back = await open("?kind=delivery.dead", undefined, reader.lastEventId)
  await back.until(() => back.events.length === 20_001)
  const { id, kind, data } = back.events[0]!
  expect(kind).toBe("gap")
  expect(data).toMatchObject({ reason: "overflow", from: reader.lastEventId, to: id, count: 100 })
  expect(back.events[1]!.id).toBe(id.replace(/\d+$/, (n) => `${Number(n) + 1}`))
  // The number counts events of all tenants: a customer is not told.
  for (const { token } of [
    await key({ scope: "read", appId: "acme" }),
    await key({ scope: "admin" }, "org_other"),
  ]) {
    const customer = await open("", token, reader.lastEventId)
    await customer.until(() => customer.events.length === 1)
    expect(customer.events[0]!.data).toMatchObject({ type: "gap", reason: "overflow", count: null })
  }
})

test("after a restart, and after a minute without a reader, a reader is told that events are missing", async () => {
  const clock = new TestClock()
  const instruments = new Recorder()
  const { open, emit } = await start({ clock, instruments })
  const pass = async (ms: number) => {
    await expect.poll(() => instruments.of("eventStreamReaders").at(-1)).toEqual([0])
    clock.advance(ms)
  }
  const elsewhere = await open("", undefined, "0123456789ab-1-17")
  await elsewhere.until(() => elsewhere.events.length === 1)
  expect(elsewhere.events[0]).toMatchObject({
    kind: "gap",
    id: elsewhere.lastEventId,
    data: { reason: "other_process", from: "0123456789ab-1-17", count: null },
  })
  elsewhere.cut()
  await pass(50_000)
  const soon = await open("", undefined, elsewhere.lastEventId)
  expect(soon.events).toEqual([])
  soon.cut()
  await pass(60_000)
  emit(1)
  const late = await open("", undefined, soon.lastEventId)
  await late.until(() => late.events.length === 1)
  expect(late.events[0]!.data).toMatchObject({ type: "gap", reason: "idle", from: soon.lastEventId })
  expect(late.lastEventId).toMatch(/-2-0$/)
})

test("a heartbeat comes every 15 seconds, and ends the stream of a key that was revoked", async () => {
  const clock = new TestClock()
  const { posthorn, open, key, emit } = await start({ clock })
  const { id, token } = await key({ scope: "read" })
  const [kept, revoked] = [await open("?kind=delivery.attempt"), await open("", token)]
  emit(3)
  await revoked.until(() => revoked.events.length === 3)
  clock.advance(15_000)
  await kept.until(() => kept.heartbeats === 1)
  await revoked.until(() => revoked.heartbeats === 1)
  // A reader to whom nothing was sent does not fall out of the buffer.
  expect(kept.lastEventId).toBe(revoked.lastEventId)
  await posthorn.keys.revoke(id)
  clock.advance(15_000)
  await revoked.closed
  await kept.until(() => kept.heartbeats === 2)
})

test("a reader that does not read is dropped, costs no memory beyond the buffer, and disturbs nobody", async () => {
  const instruments = new Recorder()
  const { open, emit } = await start({ instruments })
  const [stalled, reading] = [await open(), await open()]
  stalled.stopReading()
  let sent = 0
  const error = "x".repeat(2000)
  while (instruments.of("eventStreamDropped").length === 0) {
    emit(200, error)
    sent += 200
    await reading.until(() => reading.events.length === sent)
    expect(sent).toBeLessThan(100_000)
  }
  expect(instruments.of("eventStreamReaders").at(-1)).toEqual([1])
  stalled.response.resume()
  await stalled.closed
  expect(stalled.events.length).toBeLessThan(sent)
  // It comes back where it was, with a gap.
  const back = await open("", undefined, stalled.lastEventId)
  await back.until(() => back.events.at(-1)?.id === reading.lastEventId)
  expect(back.kinds[0]).toBe("gap")
  expect(stalled.events.length + back.events[0]!.data.count + back.events.length - 1).toBe(sent)
})

test("a reader that stalls on a quiet system is dropped after two heartbeats", async () => {
  const clock = new TestClock()
  const instruments = new Recorder()
  const { server, open, emit } = await start({ clock, instruments })
  const sockets: Socket[] = []
  server.app.server.on("connection", (socket) => sockets.push(socket))
  const [stalled, reading] = [await open(), await open()]
  stalled.stopReading()
  const drops = () => instruments.of("eventStreamDropped").length
  const connection = sockets[0]!
  const taken = () => connection.bytesWritten - connection.writableLength
  let takenBefore: number
  let heartbeats = 0
  // The operating system takes some megabytes for a reader that does not read, some of them only after a moment:
  // the reader has stalled when the connection takes nothing between two heartbeats.
  do {
    while (connection.writableLength === 0) {
      const count = reading.events.length + 100
      emit(100, "x".repeat(2000))
      await reading.until(() => reading.events.length === count)
    }
    takenBefore = taken()
    for (const last = heartbeats + 2; heartbeats < last; ) {
      clock.advance(15_000)
      heartbeats++
      await reading.until(() => reading.heartbeats === heartbeats)
    }
  } while (drops() === 0 && taken() > takenBefore)
  expect(drops()).toBe(1)
})

test("a closing server ends the streams at once", async () => {
  const { server, open, emit } = await start({ closeTimeoutMs: 100_000 })
  const [reader, stalled] = [await open(), await open()]
  stalled.stopReading()
  emit(3000, "x".repeat(2000))
  await reader.until(() => reader.events.length === 3000)
  emit(1)
  await server.app.close()
  await reader.closed
  // What happened before the stop still arrived.
  expect(reader.events).toHaveLength(3001)
})

test("a process that does not deliver from its SQLite file says that it has no events", async () => {
  const { server } = await start({ options: { deliver: false } })
  expect(await server.call("GET", "/events")).toMatchObject({
    status: 409,
    body: { code: "events_elsewhere", detail: expect.stringContaining("only the process that delivers") },
  })
})

test("a thousand readers get every event, and take no places of other requests", {
  timeout: 60_000,
}, async () => {
  const { server, open, emit } = await start({ maxRequests: 20 })
  const readers: EventReader[] = []
  for (let n = 0; n < 50; n++)
    readers.push(
      ...(await Promise.all(Array.from({ length: 20 }, () => open(n % 2 ? "" : `?kind=delivery.dead`)))),
    )
  for (let n = 0; n < 10; n++) {
    emit(10)
    expect((await server.call("GET", "/app")).status).toBe(200)
  }
  for (const reader of readers) await reader.until(() => reader.events.length === 100)
  expect(new Set(readers.map(({ lastEventId }) => lastEventId)).size).toBe(1)
})

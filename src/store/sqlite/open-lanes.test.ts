/** Only a session that wants handoffs gets accepted deliveries; a change that could make a handoff wrong closes the lane. */
import { DatabaseSync } from "node:sqlite"
import { expect, test } from "vitest"
import { sqliteStage } from "../../../test/support/sqlite-stage.ts"
import { lanesOf } from "../conformance/lanes.ts"
import { claimed, held, laneFetch, NOW, sample, settlement } from "../conformance/samples.ts"
import type { ClaimedDelivery, Endpoint, NewMessage } from "../store.ts"

const TOKEN = 7

/** A lane that is open. */
async function start(more: Partial<Endpoint> = {}, most = 10, starting = 1) {
  const stage = await sqliteStage(more)
  const { path, store, application, endpoint } = stage
  const lanes = lanesOf(store)
  const lane = lanes.of({ endpointId: endpoint.id, token: TOKEN })
  const open = () =>
    lanes.fetch(laneFetch(endpoint.id, TOKEN, { limit: most, starting, handoffPlaces: most }), NOW)
  const accept = async (message: Partial<NewMessage> = {}) =>
    (await store.acceptMany([sample.message(application.id, { receivedAt: NOW, ...message })]))[0]!
  /** The handed delivery. Otherwise the lane is woken. */
  const send = async (message: Partial<NewMessage> = {}): Promise<ClaimedDelivery | undefined> => {
    const before = lane.handedOver.length
    const { lanes: wakes } = await accept(message)
    const handed = lane.handedOver[before]
    expect(wakes.length).toBe(handed === undefined ? 1 : 0)
    return handed
  }
  const inFlight = () => {
    const db = new DatabaseSync(path, { readOnly: true })
    const rows = db.prepare("SELECT seq, token, started_at > 0 AS sent FROM in_flight ORDER BY seq").all()
    db.close()
    return rows.map((row) => ({ ...row }))
  }
  const settle = (delivery: ClaimedDelivery, status: number) =>
    lanes.settle([settlement(endpoint.id, TOKEN, delivery, status)])
  const giveBack = (...deliveries: readonly ClaimedDelivery[]) =>
    lanes.giveBack(deliveries.map((one) => ({ ...claimed(endpoint.id, TOKEN, one), attempt: null })))
  const work = await open()
  return { ...stage, lanes, lane, open, accept, send, inFlight, settle, giveBack, work }
}

test("a lane with nothing due is open, and accepted deliveries are claimed for it in the same transaction", async () => {
  const { work, accept, lane, inFlight } = await start()
  expect(work).toMatchObject({ open: true, deliveries: [] })
  const { messageId, lanes, matched } = await accept()
  expect(lane.handedOver).toMatchObject([{ seq: 1, id: expect.stringMatching(/^dlv_/), messageId }])
  expect({ lanes, matched }).toEqual({ lanes: [], matched: 1 })
  expect(inFlight()).toEqual([{ seq: 1, token: TOKEN, sent: 1 }])
})

test("a handed delivery is as a fetch would return it", async () => {
  const { send, giveBack, open } = await start()
  const handed = (await send({ sessionId: "session", maxAttempts: 3, priority: "high", inbound: "{}" }))!
  await giveBack(handed)
  const [fetched] = (await open()).deliveries
  const payload = (one: ClaimedDelivery) => Buffer.from(one.payload as Uint8Array)
  expect({ ...fetched, payload: null }).toEqual({ ...handed, payload: null })
  expect(payload(fetched!)).toEqual(payload(handed))
})

test("a handed delivery that does not start is recorded as waiting, until another leaves", async () => {
  const { send, settle, inFlight } = await start()
  const handed = [await send(), await send(), await send()]
  expect(inFlight().map(({ sent }) => sent)).toEqual([1, 0, 0])
  for (const one of handed) expect(await settle(one!, 200)).toEqual(["applied"])
  await send()
  expect(inFlight()).toEqual([{ seq: 4, token: TOKEN, sent: 1 }])
})

test("a session at its limit gets no more, and later deliveries do not overtake", async () => {
  const { send, settle, open } = await start({}, 2)
  const first = await send()
  expect(first).toBeDefined()
  expect(await send()).toBeDefined()
  expect(await send()).toBeUndefined()
  await settle(first!, 200)
  expect(await send()).toBeUndefined()
  expect((await open()).deliveries.map(({ seq }) => seq)).toEqual([3, 4])
})

test("deliveries in hand when the lane opens take places", async () => {
  const { accept, lanes, open, send, endpoint } = await start({}, 2)
  await lanes.fetch(laneFetch(endpoint.id, TOKEN), NOW)
  await accept()
  expect(await open()).toMatchObject({ open: true, deliveries: [{ seq: 1 }] })
  expect(await open()).toMatchObject({ open: true, deliveries: [] })
  expect(await send()).toBeDefined()
  expect(await send()).toBeUndefined()
})

test("large payloads take more places", async () => {
  const { send } = await start({}, 4)
  expect(await send({ payload: Buffer.alloc(8192) })).toBeDefined()
  expect(await send()).toBeDefined()
  expect(await send()).toBeUndefined()
})

test("a lane that has more due than was fetched is not open", async () => {
  const { send, open, giveBack } = await start({}, 1)
  await giveBack((await send())!)
  await send()
  expect(await open()).toMatchObject({ open: false, deliveries: [{ seq: 1 }] })
})

test("no handoff without the caller's wish, before the due time, or in an ordered lane", async () => {
  const { send, lanes, endpoint } = await start()
  expect(await send({ deliverAt: NOW + 1000 })).toBeUndefined()
  await lanes.fetch(laneFetch(endpoint.id, TOKEN), NOW)
  expect(await send()).toBeUndefined()
  const line = await start({ ordered: true })
  expect(line.work.open).toBe(false)
  expect(await line.send()).toBeUndefined()
})

test.each<[string, (stage: Awaited<ReturnType<typeof start>>) => Promise<unknown>]>([
  ["the worker closes it", ({ lane }) => lane.session.close()],
  [
    "the endpoint is changed",
    ({ store, endpoint }) => store.updateEndpoint(endpoint.id, { paused: true }, NOW),
  ],
  [
    "its application is changed",
    ({ store, application }) => store.updateApplication(application.id, { rateLimit: 5 }, NOW),
  ],
  [
    "its policy is changed",
    ({ store, endpoint }) =>
      store.putPolicy({ orgId: endpoint.orgId, name: "slow", policy: "{}", updatedAt: NOW }),
  ],
  [
    "somebody else writes to the file",
    async ({ path }) => {
      const db = new DatabaseSync(path)
      db.exec("UPDATE endpoints SET description = 'x'")
      db.close()
    },
  ],
])("the lane is closed when %s", async (_name, close) => {
  const stage = await start()
  await close(stage)
  expect(await stage.send()).toBeUndefined()
})

test("the lane is closed by a Retry-After and by a give-back", async () => {
  const asking = await start()
  const outcome = settlement(asking.endpoint.id, TOKEN, (await asking.send())!, 429)
  await asking.lanes.settle([{ ...outcome, gate: held(NOW + 60_000, 1) }])
  expect(asking.lane.session.isOpen).toBe(false)
  expect(await asking.send()).toBeUndefined()

  const giving = await start()
  await giving.giveBack((await giving.send())!)
  expect(giving.lane.session.isOpen).toBe(false)
  expect(giving.inFlight()).toEqual([])
  expect(await giving.send()).toBeUndefined()
})

test("handoffs in flight to a session that gives back are recalled, until a later fetch opens the lane", async () => {
  const { accept, giveBack, lane, open, send } = await start()
  const first = (await send())!
  await Promise.all([accept(), giveBack(first)])
  expect(lane.handedOver).toEqual([first])
  expect(lane.recalledLate).toMatchObject([{ seq: 2 }])
  await giveBack(...lane.recalledLate)
  expect((await open()).deliveries).toMatchObject([{ seq: 1 }, { seq: 2 }])
  expect(await send()).toMatchObject({ seq: 3 })
})

test("a fetch that began before a give-back does not open the lane", async () => {
  const { lane, open, send, giveBack } = await start()
  const handed = (await send())!
  const [work] = await Promise.all([open(), giveBack(handed)])
  expect(work.open).toBe(false)
  expect(lane.session.isOpen).toBe(false)
  expect(await send()).toBeUndefined()
})

test("a handoff to an ended session is given back for the lane's next owner", async () => {
  const { accept, lanes, endpoint, inFlight } = await start()
  const next = lanes.of({ endpointId: endpoint.id, token: TOKEN + 1 })
  expect((await accept()).lanes).toHaveLength(1)
  await expect.poll(inFlight).toEqual([])
  const { deliveries } = await next.session.fetch(laneFetch(endpoint.id, TOKEN + 1).want, {
    now: NOW,
    wall: NOW,
  })
  expect(deliveries).toMatchObject([{ seq: 1, stalls: 0 }])
})

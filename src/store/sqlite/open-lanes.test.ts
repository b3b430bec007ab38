/** Who asked for it is handed what is accepted, and nobody else; whatever makes it untrue that nothing else is due closes the lane. */
import { DatabaseSync } from "node:sqlite"
import { expect, test } from "vitest"
import { sqliteStage } from "../../../test/support/sqlite-stage.ts"
import { claimed, laneFetch, NOW, sample, settlement } from "../conformance/samples.ts"
import type { ClaimedDelivery, Endpoint, NewMessage } from "../store.ts"

const TOKEN = 7

/** A lane that is open. */
async function start(more: Partial<Endpoint> = {}, most = 10, starting = 1) {
  const stage = await sqliteStage(more)
  const { path, store, application, endpoint } = stage
  const open = async (inHand: readonly number[] = []) => {
    const asked = laneFetch(endpoint.id, TOKEN, { limit: most, starting, inHand, open: most })
    return (await store.fetch([asked], NOW))[0]!
  }
  const send = async (message: Partial<NewMessage> = {}) =>
    (await store.accept([sample.message(application.id, { receivedAt: NOW, ...message })]))[0]!.lanes[0]!
      .handed
  const inFlight = () => {
    const db = new DatabaseSync(path, { readOnly: true })
    const rows = db.prepare("SELECT seq, token, started_at > 0 AS sent FROM in_flight ORDER BY seq").all()
    db.close()
    return rows.map((row) => ({ ...row }))
  }
  const settle = async (seq: number, status: number) => {
    const delivery = (
      await store.listDeliveries({}, { limit: 99, order: "ascending", from: null, back: false })
    ).find((one) => one.seq === seq)!
    return store.settle([settlement(endpoint.id, TOKEN, delivery as unknown as ClaimedDelivery, status)])
  }
  return { ...stage, open, send, inFlight, settle, work: await open() }
}

test("a lane with nothing due is open, and is handed what is accepted: claimed, with its token, in the same transaction", async () => {
  const { work, send, inFlight } = await start()
  expect(work).toMatchObject({ open: true, deliveries: [] })
  const handed = await send()
  expect(handed).toEqual({ seq: 1, id: expect.stringMatching(/^dlv_/), token: TOKEN })
  expect(inFlight()).toEqual([{ seq: 1, token: TOKEN, sent: 1 }])
})

test("what has to wait for its turn is written down as such, until one is done with", async () => {
  const { send, settle, inFlight } = await start()
  for (let i = 0; i < 3; i++) await send()
  expect(inFlight().map(({ sent }) => sent)).toEqual([1, 0, 0])
  for (const seq of [1, 2, 3]) expect(await settle(seq, 200)).toEqual(["applied"])
  await send()
  expect(inFlight()).toEqual([{ seq: 4, token: TOKEN, sent: 1 }])
})

test("who has as much in hand as asked for gets no more, and what follows does not overtake", async () => {
  const { send, settle, open } = await start({}, 2)
  expect(await send()).toBeDefined()
  expect(await send()).toBeDefined()
  expect(await send()).toBeUndefined()
  await settle(1, 200)
  expect(await send()).toBeUndefined()
  expect((await open([2])).deliveries.map(({ seq }) => seq)).toEqual([3, 4])
})

test("large payloads take more of the room", async () => {
  const { send } = await start({}, 4)
  expect(await send({ payload: Buffer.alloc(8192) })).toBeDefined()
  expect(await send()).toBeDefined()
  expect(await send()).toBeUndefined()
})

test("a lane that has more due than was fetched is not open", async () => {
  const { send, open, store, endpoint } = await start({}, 1)
  await store.closeLane(endpoint.id)
  for (let i = 0; i < 2; i++) await send()
  expect(await open()).toMatchObject({ open: false, deliveries: [{ seq: 1 }] })
})

test("nobody is handed what they did not ask for, nor what is not due, nor what stands in a line", async () => {
  const { send, store, endpoint } = await start()
  expect(await send({ deliverAt: NOW + 1000 })).toBeUndefined()
  await store.fetch([laneFetch(endpoint.id, TOKEN)], NOW)
  expect(await send()).toBeUndefined()
  const line = await start({ ordered: true })
  expect(line.work.open).toBe(false)
  expect(await line.send()).toBeUndefined()
})

test.each<[string, (stage: Awaited<ReturnType<typeof start>>) => Promise<unknown>]>([
  ["the worker closes it", ({ store, endpoint }) => store.closeLane(endpoint.id)],
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
])("it is closed when %s", async (_name, close) => {
  const stage = await start()
  await close(stage)
  expect(await stage.send()).toBeUndefined()
})

test("it is closed when its endpoint asks for time, and when something is given back", async () => {
  const asking = await start()
  await asking.send()
  const { store, endpoint } = asking
  const [delivery] = await store.listDeliveries({}, { limit: 1, order: "ascending", from: null, back: false })
  const outcome = settlement(endpoint.id, TOKEN, delivery as unknown as ClaimedDelivery, 429)
  await store.settle([{ ...outcome, change: { ...outcome.change, holdLaneUntil: NOW + 60_000 } }])
  expect(await asking.send()).toBeUndefined()

  const giving = await start()
  const { seq, id } = (await giving.send())!
  const claim = claimed(giving.endpoint.id, TOKEN, { seq, id, messageId: "" } as ClaimedDelivery)
  await giving.store.giveBack([{ ...claim, attempt: null }])
  expect(giving.inFlight()).toEqual([])
  expect(await giving.send()).toBeUndefined()
})

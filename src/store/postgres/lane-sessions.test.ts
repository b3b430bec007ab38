/**
 * The session of a lane that this process owns is handed what the process accepts for it. The mark in the delivery's row is the claim, and
 * the lane's next owner finds it.
 */
import { expect, test } from "vitest"
import {
  connect,
  failOnce,
  holdAnswer,
  loseAnswer,
  NOW,
  stage,
  waiting,
} from "../../../test/support/postgres-store.ts"
import { calledOff, revived } from "../conformance/stage.ts"
import { claimed, held, laneFetch, lanesOf, newest, sample, settlement } from "../conformance.ts"
import type { ClaimedDelivery, Endpoint, LaneWant, NewMessage } from "../store.ts"
import { generationOf } from "./accept.ts"

const TOKEN = 7

/** An open lane of a living worker, in a process that has accepted a message for it. */
async function start(more: Partial<Endpoint> = {}, asked: Partial<LaneWant> = {}) {
  const set = await stage({ eventTypes: ["wanted"], ...more })
  const { store, query, application, endpoint } = set
  const lanes = lanesOf(store)
  const lane = lanes.of({ endpointId: endpoint.id, token: TOKEN })
  const accept = async (message: Partial<NewMessage> = {}) =>
    (await store.acceptMany([sample.message(application.id, { eventType: "wanted", ...message })]))[0]!
  const [{ id: worker }] = (await query(
    "INSERT INTO workers (lease_until, name) VALUES (now() + interval '1 hour', 'ours') RETURNING id",
  )) as [{ id: string }]
  const own = (token: number, owner = worker) =>
    query("UPDATE lanes SET owner = $1, token = $2", [owner, token])
  await own(TOKEN)
  const fetch = (given: Partial<LaneWant> = {}) =>
    lanes.fetch(laneFetch(endpoint.id, TOKEN, { handoffPlaces: 100, ...asked, ...given }), NOW)
  await accept()
  await query("DELETE FROM webhook_deliveries")
  await query("DELETE FROM lane_wakes")
  expect(await fetch()).toMatchObject({ deliveries: [], open: !endpoint.ordered })
  /** The handed delivery of a new message. */
  const handed = async (message: Partial<NewMessage> = {}): Promise<ClaimedDelivery | undefined> => {
    const before = lane.handedOver.length
    await accept(message)
    return lane.handedOver[before]
  }
  const marks = async () =>
    (await query("SELECT handed_token::int AS mark FROM webhook_deliveries ORDER BY seq")).map(
      ({ mark }) => mark,
    )
  const wakes = async () => (await query("SELECT lane_id FROM lane_wakes")).length
  const outcome = (delivery: ClaimedDelivery, status: number) =>
    settlement(endpoint.id, TOKEN, delivery, status)
  const giveBack = (delivery: ClaimedDelivery) =>
    lanes.giveBack([{ ...claimed(endpoint.id, TOKEN, delivery), attempt: null }])
  const attempts = async () => (await store.listAttempts({}, newest(99))).map(({ status }) => status)
  return { ...set, lanes, lane, own, accept, fetch, handed, marks, wakes, outcome, giveBack, attempts }
}

test("a delivery for an open lane is marked with its token, and wakes nothing", async () => {
  const { accept, lane, marks, wakes, fetch } = await start()
  const { messageId, lanes, matched } = await accept()
  expect({ lanes, matched }).toEqual({ lanes: [], matched: 1 })
  expect(lane.handedOver).toMatchObject([{ id: expect.stringMatching(/^dlv_/), messageId }])
  expect(await marks()).toEqual([TOKEN])
  expect(await wakes()).toBe(0)
  expect((await fetch()).deliveries).toEqual([])
})

test("a handed delivery is as a fetch would return it", async () => {
  const { handed, giveBack, fetch } = await start()
  const delivery = (await handed({ sessionId: "session", maxAttempts: 3, priority: "high", inbound: "{}" }))!
  await giveBack(delivery)
  const [fetched] = (await fetch()).deliveries
  expect({ ...fetched, payload: null }).toEqual({ ...delivery, payload: null })
  expect(Buffer.compare(fetched!.payload as Buffer, delivery.payload as Buffer)).toBe(0)
})

test("a handed delivery that does not start is recorded as waiting", async () => {
  const { handed, marks } = await start({}, { starting: 1 })
  for (let i = 0; i < 3; i++) await handed()
  expect(await marks()).toEqual([TOKEN, -TOKEN, -TOKEN])
})

test("a handed delivery is settled once, by its mark", async () => {
  const { handed, store, lanes, outcome, marks, attempts, query } = await start()
  const delivery = (await handed())!
  const settled = outcome(delivery, 200)
  expect(await lanes.settle([settled])).toEqual(["applied"])
  expect(await store.getDelivery("org_main", delivery.id)).toMatchObject({
    status: "delivered",
    attemptCount: 1,
    deliveredAt: NOW,
  })
  expect(await marks()).toEqual([null])
  expect(await lanes.settle([settled])).toEqual(["stale"])
  expect(await attempts()).toEqual(["succeeded"])
  expect(await query("SELECT sending FROM lanes")).toEqual([{ sending: [] }])
})

test("a handed delivery that fails waits for its retry, and is fetched then", async () => {
  const { handed, lanes, endpoint, outcome, marks } = await start()
  const delivery = (await handed())!
  const settled = outcome(delivery, 500)
  expect(await lanes.settle([settled])).toEqual(["applied"])
  expect(await marks()).toEqual([null])
  const work = await lanes.fetch(laneFetch(endpoint.id, TOKEN), settled.change.nextRetryAt!)
  expect(work.deliveries).toMatchObject([{ seq: delivery.seq, attemptCount: 1 }])
})

test("a handed delivery that is given back is fetched again", async () => {
  const { handed, giveBack, fetch, attempts } = await start()
  const delivery = (await handed())!
  await giveBack(delivery)
  expect((await fetch()).deliveries).toMatchObject([{ seq: delivery.seq, stalls: 0 }])
  expect(await attempts()).toEqual([])
})

test("an attempt of a handed delivery that was called off is logged, and counted once", async () => {
  const { handed, lanes, outcome, attempts, query } = await start()
  const settled = outcome((await handed())!, 200)
  await query("UPDATE webhook_deliveries SET status = 'dead', dead_reason = 'cancelled'")
  expect(await lanes.settle([settled])).toEqual(["superseded"])
  expect(await lanes.settle([settled])).toEqual(["stale"])
  expect(await attempts()).toEqual(["succeeded"])
  expect(
    await query(
      "SELECT attempt_count, a.purge_day = d.purge_day AS together FROM attempts a, webhook_deliveries d",
    ),
  ).toEqual([{ attempt_count: 1, together: true }])
})

test("an attempt of a handed delivery that was reset is logged, and the reset stays", async () => {
  const { handed, lanes, outcome, attempts, fetch, query } = await start()
  const delivery = (await handed())!
  const { seq } = delivery
  const settled = { ...outcome(delivery, 500), delivery: { ...delivery, attemptCount: 3 } }
  expect(await lanes.settle([settled])).toEqual(["superseded"])
  expect(await attempts()).toEqual(["failed"])
  expect(await query("SELECT status, attempt_count, handed_token FROM webhook_deliveries")).toEqual([
    { status: "pending", attempt_count: 0, handed_token: null },
  ])
  expect((await fetch()).deliveries).toMatchObject([{ seq, attemptCount: 0 }])
})

test.each([
  ["an operator's", 200],
  ["an operator's", 500],
  ["a typed", 200],
  ["a typed", 500],
] as const)("an attempt from before a cancel and %s retry (HTTP %i) is logged, and not counted for the retry", async (whose, status) => {
  const { handed, lanes, store, outcome, attempts, fetch, query } = await start()
  const delivery = (await handed())!
  const { seq, id } = delivery
  const settled = outcome(delivery, status)
  const read = async () => (await store.getDelivery("org_main", id))!
  if (whose === "a typed") {
    await query("UPDATE webhook_deliveries SET status = 'dead', dead_reason = 'cancelled'")
    await query("UPDATE webhook_deliveries SET status = 'pending', attempt_count = 0")
  } else {
    await store.amendIfUnchanged([calledOff(await read())])
    await store.amendIfUnchanged([revived(await read(), NOW + 1000)])
  }
  expect(await lanes.settle([settled])).toEqual(["superseded"])
  expect(await lanes.settle([settled])).toEqual(["stale"])
  expect(await attempts()).toEqual([status === 200 ? "succeeded" : "failed"])
  expect(await read()).toMatchObject({ status: "pending", attemptCount: 0 })
  expect((await fetch()).deliveries).toMatchObject([{ seq, attemptCount: 0, stalls: 0 }])
})

test("a session that is replaced during a handoff still gets the delivery, and closes", async () => {
  const { store, accept, lanes, lane, endpoint } = await start()
  const { committed, release } = holdAnswer(store, "messages.accept")
  const sent = accept()
  await committed
  const closed = lane.session.close()
  lanes.of({ endpointId: endpoint.id, token: TOKEN + 1 })
  release()
  const { messageId } = await sent
  await closed
  expect(lane.handedOver).toMatchObject([{ messageId }])
})

test.each<[string, (set: Awaited<ReturnType<typeof start>>) => Promise<unknown>]>([
  ["the worker closes it", ({ lane }) => lane.session.close()],
  [
    "its endpoint is paused",
    ({ store, endpoint }) => store.updateEndpoint(endpoint.id, { paused: true }, NOW),
  ],
  [
    "its endpoint is changed by typed SQL",
    ({ query }) => query("UPDATE endpoints SET url = 'http://127.0.0.1:9/new'"),
  ],
  ["its endpoint is paused by typed SQL", ({ query }) => query("UPDATE endpoints SET paused = true")],
  [
    "its application is changed",
    ({ store, application }) => store.updateApplication(application.id, { rateLimit: 5 }, NOW),
  ],
  ["somebody reaped its worker", ({ query }) => query("UPDATE workers SET lease_until = '-infinity'")],
  [
    "its endpoint asks for time",
    async ({ handed, lanes, outcome }) => {
      const settled = outcome((await handed())!, 429)
      await lanes.settle([{ ...settled, gate: held(NOW + 60_000, 1) }])
    },
  ],
])("nothing is handed over when %s; the lane is woken", async (_name, change) => {
  const set = await start()
  await change(set)
  await set.query("DELETE FROM lane_wakes")
  expect(await set.handed()).toBeUndefined()
  expect((await set.marks()).at(-1)).toBe(null)
  expect(await set.wakes()).toBe(1)
  expect(set.lane.session.isOpen).toBe(false)
})

test("an endpoint created before the send is never missed, and a deleted one gets nothing", async () => {
  const { store, application, endpoint, accept } = await start()
  for (let i = 1; i <= 5; i++) {
    const next = sample.endpoint(application.id, { eventTypes: ["wanted"] })
    await store.createEndpoint(next)
    expect((await accept()).matched).toBe(i + 1)
    await accept()
    await accept()
  }
  await store.deleteEndpoint(
    endpoint.id,
    sample.task({ action: "cancel", filter: { endpointId: endpoint.id } }),
  )
  expect((await accept()).matched).toBe(5)
})

test("an application that lost its uid to another gets no messages by it", async () => {
  const { store, application, query } = await start()
  await query("UPDATE applications SET uid = 'acme'")
  const send = async () =>
    (await store.acceptMany([sample.message("acme", { eventType: "wanted" })]))[0]!.matched
  for (let i = 0; i < 5; i++) expect(await send()).toBe(1)
  await store.updateApplication(application.id, { uid: null }, NOW)
  await store.createApplication(sample.application({ uid: "acme" }))
  for (let i = 0; i < 5; i++) expect(await send()).toBe(0)
})

test("deliveries of ordered lanes and deferred ones are not handed over", async () => {
  const line = await start({ ordered: true })
  expect((await line.fetch()).open).toBe(false)
  expect(await line.handed()).toBeUndefined()
  const { handed } = await start()
  expect(await handed({ deliverAt: NOW + 1000 })).toBeUndefined()
})

test("a worker that takes the lane over finds the handed deliveries, and the old owner's settles are stale", async () => {
  const { handed, lanes, endpoint, outcome, own, attempts, marks } = await start({}, { starting: 1 })
  const [sent, waited] = [(await handed())!, (await handed())!]
  const late = [outcome(sent, 200), outcome(waited, 500)]
  await own(TOKEN + 1)
  const work = await lanes.fetch(laneFetch(endpoint.id, TOKEN + 1), NOW)
  // Only the started delivery may have caused the crash.
  expect(work.deliveries).toMatchObject([
    { seq: sent.seq, stalls: 1 },
    { seq: waited.seq, stalls: 0 },
  ])
  expect(await attempts()).toEqual(["unknown", "unknown"])
  expect(await lanes.settle(late)).toEqual(["stale", "stale"])
  expect(await marks()).toEqual([null, null])
})

test("a handed delivery of a lost reply is fetched by its owner, without an attempt", async () => {
  const { accept, fetch, query, attempts } = await start()
  await fetch({ handoffPlaces: 0 })
  const { messageId } = await accept()
  await query("UPDATE webhook_deliveries_live SET handed_token = $1", [TOKEN])
  expect((await fetch()).deliveries).toMatchObject([{ messageId, stalls: 0 }])
  expect(await attempts()).toEqual([])
})

test("an accept whose reply got lost wakes the lanes that it may have marked", async () => {
  const { store, handed, wakes, query, fetch, attempts } = await start()
  loseAnswer(store, "messages.accept")
  await expect(handed()).rejects.toThrow("the connection broke")
  expect(await query("SELECT handed_token::int AS mark FROM webhook_deliveries_live")).toEqual([
    { mark: TOKEN },
  ])
  await expect.poll(wakes).toBe(1)
  expect((await fetch()).deliveries).toMatchObject([{ stalls: 0 }])
  expect(await attempts()).toEqual([])
})

test("an accept that fails with an open lane is retried without it", async () => {
  const { store, accept, lane, wakes, marks } = await start()
  failOnce(store, "messages.accept", Object.assign(new Error("waited for too long"), { code: "55P03" }))
  expect(await accept()).toMatchObject({ matched: 1, lanes: [{}] })
  expect(lane.handedOver).toEqual([])
  expect(await marks()).toEqual([null])
  expect(await wakes()).toBe(1)
})

test("a worker is not reaped during a handoff to it, and a reaped worker gets no handoffs", async () => {
  const { client, query, handed, marks, url, wakes } = await start()
  const other = await connect(url)
  await query("UPDATE workers SET lease_until = now() - interval '1 hour'")
  await other.query("BEGIN; SELECT id FROM workers FOR SHARE")
  await query("SELECT posthorn_reap()")
  expect(await query("SELECT token::int, owner <> 0 AS owned FROM lanes")).toEqual([
    { token: TOKEN, owned: true },
  ])
  await other.query("COMMIT; BEGIN; SELECT posthorn_reap()")
  const sent = handed()
  await waiting(client, 1)
  await other.query("COMMIT")
  expect(await sent).toBeUndefined()
  expect(await marks()).toEqual([null])
  expect(await wakes()).toBe(1)
})

test("close waits for handoffs in flight", async () => {
  const { store, lane, accept } = await start()
  const { committed, release } = holdAnswer(store, "messages.accept")
  const sent = accept()
  await committed
  const closed = lane.session.close().then(() => lane.handedOver.length)
  release()
  expect(await closed).toBe(1)
  expect((await sent).lanes).toEqual([])
})

test("a fetch skips deliveries that a handoff in flight has marked", async () => {
  const { store, accept, lane, fetch, marks } = await start()
  const { committed, release } = holdAnswer(store, "messages.accept")
  const sent = accept()
  await committed
  expect(await fetch()).toMatchObject({ deliveries: [], open: true })
  expect(lane.handedOver).toEqual([])
  release()
  await sent
  expect(lane.handedOver).toHaveLength(1)
  expect(await marks()).toEqual([TOKEN])
})

test("a fetch of a closed lane waits for handoffs in flight", async () => {
  const { store, application, endpoint, lane, handed, giveBack, fetch } = await start()
  // Another name of the same application: its statements do not wait for those of the first.
  await store.updateApplication(application.id, { uid: "acme" }, NOW)
  await fetch()
  const first = (await handed())!
  const sent: Promise<unknown>[] = []
  const held = []
  for (const app of [application.id, "acme"]) {
    const { committed, release } = holdAnswer(store, "messages.accept")
    sent.push(store.acceptMany([sample.message(app, { to: endpoint.id })]))
    await committed
    held.push(release)
  }
  const given = giveBack(first)
  let isFetched = false
  const fetched = fetch().finally(() => {
    isFetched = true
  })
  // A fetch that did not wait would go into this batch.
  await given
  held[1]!()
  await sent[1]
  expect(isFetched).toBe(false)
  held[0]!()
  expect((await fetched).deliveries).toMatchObject([{ seq: first.seq }])
  expect(lane.recalledLate).toHaveLength(2)
  await sent[0]
})

test("handoffs in flight to a session that gives back are recalled, and none follow", async () => {
  const { store, lane, accept, handed, giveBack, fetch } = await start()
  const first = (await handed())!
  const { committed, release } = holdAnswer(store, "messages.accept")
  const sent = accept()
  await committed
  const given = giveBack(first)
  release()
  await Promise.all([sent, given])
  expect(lane.handedOver).toEqual([first])
  const [late] = lane.recalledLate
  expect(lane.recalledLate).toHaveLength(1)
  expect(await handed()).toBeUndefined()
  await giveBack(late!)
  expect((await fetch()).deliveries).toHaveLength(3)
  expect(await handed()).toBeDefined()
})

test("an outcome that cannot be written keeps its place over all tries", async () => {
  const { store, lanes, lane, handed, outcome, fetch } = await start({}, { handoffPlaces: 2 })
  const settled = outcome((await handed())!, 200)
  for (let i = 0; i < 5; i++) {
    failOnce(store, "deliveries.settle")
    await expect(lanes.settle([settled])).rejects.toThrow("the statement failed")
  }
  expect(lane.session.isOpen).toBe(false)
  expect(await fetch()).toMatchObject({ deliveries: [], open: true })
  expect(await handed()).toBeDefined()
  expect(await handed()).toBeUndefined()
})

test("a delivery whose settle is in flight takes no place", async () => {
  const { store, lanes, handed, outcome, fetch } = await start({}, { handoffPlaces: 1 })
  const delivery = (await handed())!
  await fetch({ handoffPlaces: 0 })
  const { committed, release } = holdAnswer(store, "lanes.fetch")
  const fetched = fetch()
  await committed
  const settled = lanes.settle([outcome(delivery, 200)])
  release()
  expect(await fetched).toMatchObject({ deliveries: [], open: true })
  expect(await handed()).toBeDefined()
  expect(await settled).toEqual(["applied"])
})

test("lanes of an earlier worker of this process get no handoffs after a later one fetched", async () => {
  const { store, lanes, lane, application, query, handed } = await start()
  const other = sample.endpoint(application.id, { eventTypes: ["another"] })
  await store.createEndpoint(other)
  const [{ id: later }] = (await query(
    "INSERT INTO workers (lease_until, name) VALUES (now() + interval '1 hour', 'later') RETURNING id",
  )) as [{ id: string }]
  await query("UPDATE lanes SET owner = $1, token = 1 WHERE id = $2", [later, other.id])
  const { open } = await lanes.fetch(laneFetch(other.id, 1, { handoffPlaces: 100 }), NOW)
  expect([open, lane.session.isOpen]).toEqual([true, false])
  expect(await handed()).toBeUndefined()
})

test("a delivery that is given back is found by a fetch of the same batch", async () => {
  const { handed, giveBack, fetch, wakes } = await start()
  const delivery = (await handed())!
  const [, work] = await Promise.all([giveBack(delivery), fetch()])
  expect(work.deliveries).toMatchObject([{ seq: delivery.seq }])
  // The lane's owner is woken.
  expect(await wakes()).toBe(1)
})

test("a retry that is due immediately is found by a fetch of the same batch", async () => {
  const { handed, lanes, outcome, fetch } = await start()
  const delivery = (await handed())!
  const failed = outcome(delivery, 500)
  const settled = { ...failed, change: { ...failed.change, nextRetryAt: NOW } }
  const [results, work] = await Promise.all([lanes.settle([settled]), fetch()])
  expect(results).toEqual(["applied"])
  expect(work.deliveries).toMatchObject([{ seq: delivery.seq, attemptCount: 1 }])
  expect((await fetch()).deliveries).toEqual([])
})

test("a delivery is not fetched again while its give-back is in flight", async () => {
  const { accept, lane, fetch, giveBack, store } = await start()
  await lane.session.giveBack([])
  await accept()
  const [delivery] = (await fetch()).deliveries
  loseAnswer(store, "deliveries.give-back")
  await expect(giveBack(delivery!)).rejects.toThrow()
  expect((await fetch()).deliveries).toEqual([])
  await giveBack(delivery!)
  expect((await fetch()).deliveries).toMatchObject([{ seq: delivery!.seq }])
})

test("a key that two processes wrote when a generation ended is a duplicate, and affects no other message", async () => {
  const { store, application, query } = await start()
  const idempotency = { key: Buffer.from("key"), digest: Buffer.from("digest") }
  const keyed = () => store.acceptMany([sample.message(application.id, { idempotency })])
  const [first] = await keyed()
  await store.partitions.ensureGeneration(generationOf([sample.message(application.id)]) - 1)
  await query(
    "INSERT INTO idempotency SELECT generation - 1, app_id, key, message_id, digest FROM idempotency",
  )
  const [again, other] = await Promise.all([keyed(), store.acceptMany([sample.message(application.id)])])
  expect(again[0]).toMatchObject({ messageId: first!.messageId, duplicate: true })
  expect(other[0]).toMatchObject({ duplicate: false, matched: 0 })
})

test("an outcome whose reply got lost is written once", async () => {
  const { handed, store, lanes, outcome, attempts } = await start()
  const settled = outcome((await handed())!, 200)
  loseAnswer(store, "deliveries.settle")
  await expect(lanes.settle([settled])).rejects.toThrow("the connection broke")
  expect(await lanes.settle([settled])).toEqual(["stale"])
  expect(await attempts()).toEqual(["succeeded"])
})

test("an interrupted attempt of a called-off delivery is logged, and removed with the delivery", async () => {
  const { handed, lanes, endpoint, attempts, query } = await start()
  const claim = claimed(endpoint.id, TOKEN, (await handed())!)
  await query("UPDATE webhook_deliveries SET status = 'dead', dead_reason = 'cancelled'")
  await lanes.giveBack([{ ...claim, attempt: sample.attempt({ status: "unknown" }) }])
  expect(await attempts()).toEqual(["unknown"])
  expect(
    await query("SELECT a.purge_day = d.purge_day AS together FROM attempts a, webhook_deliveries d"),
  ).toEqual([{ together: true }])
})

test("a message that waits for a lock delays no other application", async () => {
  const { handed, store, client, url } = await start()
  const application = sample.application()
  await store.createApplication(application)
  const idempotency = { key: Buffer.from("key"), digest: Buffer.from("digest") }
  const keyed = () => sample.message(application.id, { idempotency })
  const other = await connect(url)
  await other.query("BEGIN")
  await store.acceptMany([keyed()], other)
  const waits = store.acceptMany([keyed()])
  await waiting(client, 1)
  expect(await handed()).toBeDefined()
  await other.query("COMMIT")
  expect(await waits).toMatchObject([{ duplicate: true }])
})

test("a delivery that another transaction has locked is left for later, and delays nothing else", async () => {
  const { accept, fetch, query, url } = await start()
  await fetch({ handoffPlaces: 0 })
  const [first, second] = [await accept(), await accept()]
  const held = "webhook_deliveries_live WHERE message_id = $1"
  await query(`UPDATE ${held.replace("WHERE", "SET handed_token = $2 WHERE")}`, [first.messageId, TOKEN])
  const other = await connect(url)
  await other.query("BEGIN")
  await other.query(`SELECT FROM ${held} FOR UPDATE`, [first.messageId])
  expect(await fetch()).toMatchObject({
    deliveries: [{ messageId: second.messageId }],
    nextDueAt: NOW + 1000,
    open: false,
  })
  await other.query("COMMIT")
  expect((await fetch()).deliveries).toMatchObject([{ messageId: first.messageId }])
})

test("a revived delivery has no mark, and a delivered one has no error", async () => {
  const { handed, lanes, fetch, own, endpoint, query, attempts } = await start()
  await handed()
  await query("UPDATE webhook_deliveries SET status = 'dead', error_detail = 'HTTP 500'")
  await query("UPDATE webhook_deliveries SET status = 'pending', attempt_count = 0")
  await own(TOKEN + 1)
  const work = await lanes.fetch(laneFetch(endpoint.id, TOKEN + 1), NOW)
  expect(work.deliveries).toMatchObject([{ stalls: 0 }])
  expect(await attempts()).toEqual([])
  const made = settlement(endpoint.id, TOKEN + 1, work.deliveries[0]!, 200)
  expect(await lanes.settle([{ ...made, attempt: { ...made.attempt!, error: null } }])).toEqual(["applied"])
  expect(await query("SELECT status, error_detail FROM webhook_deliveries")).toEqual([
    { status: "delivered", error_detail: null },
  ])
  expect((await fetch()).lost).toBe(true)
})

test("a locked worker's row delays a send no longer than any other lock", async () => {
  const { handed, url } = await start()
  const other = await connect(url)
  await other.query("BEGIN; SELECT FROM workers FOR UPDATE")
  const startedAt = performance.now()
  expect(await handed()).toBeUndefined()
  expect(performance.now() - startedAt).toBeLessThan(1500)
  await other.query("COMMIT")
})

test("calls keep their order, with and without event ids", async () => {
  const { accept, query } = await start()
  const sent = Array.from({ length: 60 }, (_, n) =>
    accept({ sessionId: String(n), eventId: n % 7 < 3 ? `event-${n}` : null }),
  )
  await Promise.all(sent)
  const order = (await query("SELECT session_id::int AS n FROM webhook_deliveries ORDER BY seq")).map(
    ({ n }) => n,
  )
  expect(order).toEqual(Array.from({ length: 60 }, (_, n) => n))
})

test("calls keep their order when the open lane knows an old version", async () => {
  const { accept, query } = await start()
  await query("UPDATE endpoints SET url = 'http://127.0.0.1:9/new'")
  const sent: Promise<unknown>[] = []
  for (let n = 0; n < 60; n++) {
    sent.push(accept({ sessionId: String(n), eventId: n % 2 === 1 ? `event-${n}` : null }))
    if (n % 10 === 9) await new Promise((resolve) => setImmediate(resolve))
  }
  await Promise.all(sent)
  const order = (await query("SELECT session_id::int AS n FROM webhook_deliveries ORDER BY seq")).map(
    ({ n }) => n,
  )
  expect(order).toEqual(Array.from({ length: 60 }, (_, n) => n))
})

test("a lane whose fetch failed in a batch is not open", async () => {
  const { store, application, endpoint, query, handed, fetch, own, lanes } = await start()
  await handed()
  // In the same pipeline, with deliveries of an earlier owner.
  const pipeline = ({ id }: Endpoint) => id.charCodeAt(id.length - 1) % 2
  const others = [1, 2].map(() => sample.endpoint(application.id, { eventTypes: ["another"] }))
  const other = others.find((one) => pipeline(one) === pipeline(endpoint))!
  await store.createEndpoint(other)
  await own(TOKEN)
  await query("UPDATE lanes SET sending = '{99}', since = '{1}', sending_token = 1 WHERE id <> $1", [
    endpoint.id,
  ])
  await fetch({ handoffPlaces: 0 })
  failOnce(store, "lanes.take-over")
  const [first] = await Promise.allSettled(
    [endpoint, other].map(({ id }) => lanes.fetch(laneFetch(id, TOKEN, { handoffPlaces: 100 }), NOW)),
  )
  expect(first).toMatchObject({ status: "rejected", reason: new Error("the statement failed") })
  expect(await handed()).toBeUndefined()
})

test.each<[string, (set: Awaited<ReturnType<typeof start>>) => Promise<void>]>([
  ["closed", ({ lane }) => lane.session.close()],
  ["given back", ({ lane }) => lane.session.giveBack([])],
])("a lane that is %s during its fetch stays closed", async (_name, close) => {
  const set = await start()
  const { store, endpoint, url, fetch, handed } = set
  await store.updateEndpoint(endpoint.id, { description: "changed" }, NOW)
  const other = await connect(url)
  await other.query("BEGIN; SELECT FROM lanes FOR UPDATE")
  const fetched = fetch()
  await waiting(other, 1)
  await close(set)
  await other.query("COMMIT")
  expect(await fetched).toMatchObject({ open: false, endpoint: { description: "changed" } })
  expect(await handed()).toBeUndefined()
})

test("a locked delivery that cannot be given back is found when the lock is released", async () => {
  const { handed, giveBack, fetch, url } = await start()
  const delivery = (await handed())!
  const other = await connect(url)
  await other.query("BEGIN; SELECT FROM webhook_deliveries_live FOR UPDATE")
  const [, work] = await Promise.all([giveBack(delivery), fetch()])
  expect(work).toMatchObject({ deliveries: [], open: false })
  await other.query("COMMIT")
  expect((await fetch()).deliveries).toMatchObject([{ seq: delivery.seq }])
})

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
  /** What is handed over of a message. */
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

test("what is accepted for an open lane is marked as in its owner's hands, and wakes nobody", async () => {
  const { accept, lane, marks, wakes, fetch } = await start()
  const { messageId, lanes, matched } = await accept()
  expect({ lanes, matched }).toEqual({ lanes: [], matched: 1 })
  expect(lane.handedOver).toMatchObject([{ id: expect.stringMatching(/^dlv_/), messageId }])
  expect(await marks()).toEqual([TOKEN])
  expect(await wakes()).toBe(0)
  expect((await fetch()).deliveries).toEqual([])
})

test("what is handed over is as a fetch would give it", async () => {
  const { handed, giveBack, fetch } = await start()
  const delivery = (await handed({ sessionId: "session", maxAttempts: 3, priority: "high" }))!
  await giveBack(delivery)
  const [fetched] = (await fetch()).deliveries
  expect({ ...fetched, payload: null }).toEqual({ ...delivery, payload: null })
  expect(Buffer.compare(fetched!.payload as Buffer, delivery.payload as Buffer)).toBe(0)
})

test("what has to wait for its turn is written down as such", async () => {
  const { handed, marks } = await start({}, { starting: 1 })
  for (let i = 0; i < 3; i++) await handed()
  expect(await marks()).toEqual([TOKEN, -TOKEN, -TOKEN])
})

test("it is settled once, and by its mark alone", async () => {
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

test("one that fails waits for its retry, and is fetched then", async () => {
  const { handed, lanes, endpoint, outcome, marks } = await start()
  const delivery = (await handed())!
  const settled = outcome(delivery, 500)
  expect(await lanes.settle([settled])).toEqual(["applied"])
  expect(await marks()).toEqual([null])
  const work = await lanes.fetch(laneFetch(endpoint.id, TOKEN), settled.change.nextRetryAt!)
  expect(work.deliveries).toMatchObject([{ seq: delivery.seq, attemptCount: 1 }])
})

test("one that is given back is fetched again, as if it had not been handed over", async () => {
  const { handed, giveBack, fetch, attempts } = await start()
  const delivery = (await handed())!
  await giveBack(delivery)
  expect((await fetch()).deliveries).toMatchObject([{ seq: delivery.seq, stalls: 0 }])
  expect(await attempts()).toEqual([])
})

test("an attempt for one that somebody called off meanwhile is in the log, and is counted once", async () => {
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

test("an attempt for one that somebody reset meanwhile is in the log, and the reset stands", async () => {
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
] as const)("an attempt from before a cancel and %s retry (HTTP %i) is in the log, and the retry begins without it", async (whose, status) => {
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

test("a session that is replaced while a delivery is on its way to it still gets that delivery, and closes", async () => {
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
])("nothing is handed over when %s; it is left to whoever is woken", async (_name, change) => {
  const set = await start()
  await change(set)
  await set.query("DELETE FROM lane_wakes")
  expect(await set.handed()).toBeUndefined()
  expect((await set.marks()).at(-1)).toBe(null)
  expect(await set.wakes()).toBe(1)
  expect(set.lane.session.isOpen).toBe(false)
})

test("an endpoint that was created before the send is never missed, nor one that was deleted sent to", async () => {
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

test("an application that lost its uid to another gets nothing more by that name", async () => {
  const { store, application, query } = await start()
  await query("UPDATE applications SET uid = 'acme'")
  const send = async () =>
    (await store.acceptMany([sample.message("acme", { eventType: "wanted" })]))[0]!.matched
  for (let i = 0; i < 5; i++) expect(await send()).toBe(1)
  await store.updateApplication(application.id, { uid: null }, NOW)
  await store.createApplication(sample.application({ uid: "acme" }))
  for (let i = 0; i < 5; i++) expect(await send()).toBe(0)
})

test("lines, and what is not due yet, are not handed over", async () => {
  const line = await start({ ordered: true })
  expect((await line.fetch()).open).toBe(false)
  expect(await line.handed()).toBeUndefined()
  const { handed } = await start()
  expect(await handed({ deliverAt: NOW + 1000 })).toBeUndefined()
})

test("whoever takes the lane over finds what was in its owner's hands, and the owner writes nothing more", async () => {
  const { handed, lanes, endpoint, outcome, own, attempts, marks } = await start({}, { starting: 1 })
  const [sent, waited] = [(await handed())!, (await handed())!]
  const late = [outcome(sent, 200), outcome(waited, 500)]
  await own(TOKEN + 1)
  const work = await lanes.fetch(laneFetch(endpoint.id, TOKEN + 1), NOW)
  // Only the one that was under way may have been the cause.
  expect(work.deliveries).toMatchObject([
    { seq: sent.seq, stalls: 1 },
    { seq: waited.seq, stalls: 0 },
  ])
  expect(await attempts()).toEqual(["unknown", "unknown"])
  expect(await lanes.settle(late)).toEqual(["stale", "stale"])
  expect(await marks()).toEqual([null, null])
})

test("one whose answer got lost is fetched by its owner, and was no attempt", async () => {
  const { accept, fetch, query, attempts } = await start()
  await fetch({ handoffPlaces: 0 })
  const { messageId } = await accept()
  await query("UPDATE webhook_deliveries_live SET handed_token = $1", [TOKEN])
  expect((await fetch()).deliveries).toMatchObject([{ messageId, stalls: 0 }])
  expect(await attempts()).toEqual([])
})

test("an accept whose answer got lost wakes the lanes that it may have handed something to", async () => {
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

test("an accept that is refused with an open lane is made again without it", async () => {
  const { store, accept, lane, wakes, marks } = await start()
  failOnce(store, "messages.accept", Object.assign(new Error("waited for too long"), { code: "55P03" }))
  expect(await accept()).toMatchObject({ matched: 1, lanes: [{}] })
  expect(lane.handedOver).toEqual([])
  expect(await marks()).toEqual([null])
  expect(await wakes()).toBe(1)
})

test("a worker is not reaped beside a statement that hands something to it, and nothing is handed to one that was", async () => {
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

test("a lane is closed when what is on its way to it has arrived", async () => {
  const { store, lane, accept } = await start()
  const { committed, release } = holdAnswer(store, "messages.accept")
  const sent = accept()
  await committed
  const closed = lane.session.close().then(() => lane.handedOver.length)
  release()
  expect(await closed).toBe(1)
  expect((await sent).lanes).toEqual([])
})

test("a fetch beside a statement that hands something over leaves that to it", async () => {
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

test("a fetch for a lane that is not open waits for every statement that may hand it something", async () => {
  const { store, application, endpoint, lane, handed, giveBack, fetch } = await start()
  // Another name for the same application: its statements wait for none of the other's.
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
  // A fetch that did not wait would be made with this.
  await given
  held[1]!()
  await sent[1]
  expect(isFetched).toBe(false)
  held[0]!()
  expect((await fetched).deliveries).toMatchObject([{ seq: first.seq }])
  expect(lane.recalledLate).toHaveLength(2)
  await sent[0]
})

test("what is on its way to a session that gives back is recalled, and what follows is not handed over", async () => {
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

test("an outcome that cannot be written keeps its place, however often it is tried", async () => {
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

test("a delivery whose outcome is on its way into the database takes no place", async () => {
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

test("the lanes of an earlier worker of this process are handed nothing when a later one fetches", async () => {
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

test("one that is given back is found by a fetch that is asked for with it", async () => {
  const { handed, giveBack, fetch, wakes } = await start()
  const delivery = (await handed())!
  const [, work] = await Promise.all([giveBack(delivery), fetch()])
  expect(work.deliveries).toMatchObject([{ seq: delivery.seq }])
  // Whoever has the lane by then is woken.
  expect(await wakes()).toBe(1)
})

test("a retry that is due at once is found by a fetch that is asked for with its failure", async () => {
  const { handed, lanes, outcome, fetch } = await start()
  const delivery = (await handed())!
  const failed = outcome(delivery, 500)
  const settled = { ...failed, change: { ...failed.change, nextRetryAt: NOW } }
  const [results, work] = await Promise.all([lanes.settle([settled]), fetch()])
  expect(results).toEqual(["applied"])
  expect(work.deliveries).toMatchObject([{ seq: delivery.seq, attemptCount: 1 }])
  expect((await fetch()).deliveries).toEqual([])
})

test("a delivery whose giving back was not answered is not fetched again before the answer is known", async () => {
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

test("a key that two processes wrote at the turn of a generation is answered as a duplicate, and harms no other message", async () => {
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

test("an outcome whose answer got lost is written once", async () => {
  const { handed, store, lanes, outcome, attempts } = await start()
  const settled = outcome((await handed())!, 200)
  loseAnswer(store, "deliveries.settle")
  await expect(lanes.settle([settled])).rejects.toThrow("the connection broke")
  expect(await lanes.settle([settled])).toEqual(["stale"])
  expect(await attempts()).toEqual(["succeeded"])
})

test("an interrupted attempt for one that was called off meanwhile is in the log, and goes when its delivery does", async () => {
  const { handed, lanes, endpoint, attempts, query } = await start()
  const claim = claimed(endpoint.id, TOKEN, (await handed())!)
  await query("UPDATE webhook_deliveries SET status = 'dead', dead_reason = 'cancelled'")
  await lanes.giveBack([{ ...claim, attempt: sample.attempt({ status: "unknown" }) }])
  expect(await attempts()).toEqual(["unknown"])
  expect(
    await query("SELECT a.purge_day = d.purge_day AS together FROM attempts a, webhook_deliveries d"),
  ).toEqual([{ together: true }])
})

test("a message that has to wait for somebody holds up none of another application", async () => {
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

test("what somebody's open transaction holds is left for later, and holds up nothing else", async () => {
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

test("one that comes back to life is in nobody's hands, and one that is delivered has no error", async () => {
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

test("a worker's row that is locked for long holds up a send no longer than any lock does", async () => {
  const { handed, url } = await start()
  const other = await connect(url)
  await other.query("BEGIN; SELECT FROM workers FOR UPDATE")
  const startedAt = performance.now()
  expect(await handed()).toBeUndefined()
  expect(performance.now() - startedAt).toBeLessThan(1500)
  await other.query("COMMIT")
})

test("calls keep their order, whether their event ids have to be looked up or not", async () => {
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

test("calls keep their order when the open lane turns out to know an old version", async () => {
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

test("a lane whose fetch failed with another's is not open", async () => {
  const { store, application, endpoint, query, handed, fetch, own, lanes } = await start()
  await handed()
  // Of the same pipeline, and left behind by an earlier owner.
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
])("a lane that is %s while it is asked for stays closed, whatever the answer says", async (_name, close) => {
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

test("a delivery that cannot be given back now, because somebody holds it, is found when he is done", async () => {
  const { handed, giveBack, fetch, url } = await start()
  const delivery = (await handed())!
  const other = await connect(url)
  await other.query("BEGIN; SELECT FROM webhook_deliveries_live FOR UPDATE")
  const [, work] = await Promise.all([giveBack(delivery), fetch()])
  expect(work).toMatchObject({ deliveries: [], open: false })
  await other.query("COMMIT")
  expect((await fetch()).deliveries).toMatchObject([{ seq: delivery.seq }])
})

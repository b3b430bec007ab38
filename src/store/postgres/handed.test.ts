/** A lane that this process owns is handed what it accepts for it; the mark in the row is the claim, and whoever comes after finds it. */
import { expect, test } from "vitest"
import { connect, NOW, stage, waiting } from "../../../test/support/postgres-store.ts"
import { calledOff, revived } from "../conformance/stage.ts"
import { claimed, laneFetch, newest, sample, settlement } from "../conformance.ts"
import type { ClaimedDelivery, Endpoint, LaneFetch, NewMessage, Settlement } from "../store.ts"
import type { PostgresStore } from "./store.ts"

const TOKEN = 7

/** An open lane of a living worker, in a process that knows the application's endpoints. */
async function start(more: Partial<Endpoint> = {}, asked: Partial<LaneFetch> = {}) {
  const set = await stage({ eventTypes: ["wanted"], ...more })
  const { store, query, application, endpoint } = set
  const accept = async (message: Partial<NewMessage> = {}) =>
    (await store.accept([sample.message(application.id, { eventType: "wanted", ...message })]))[0]!
  const [{ id: worker }] = (await query(
    "INSERT INTO workers (lease_until, name) VALUES (now() + interval '1 hour', 'ours') RETURNING id",
  )) as [{ id: string }]
  const own = (token: number, owner = worker) =>
    query("UPDATE lanes SET owner = $1, token = $2", [owner, token])
  await own(TOKEN)
  const fetch = async (given: Partial<LaneFetch> = {}) =>
    (await store.fetch([laneFetch(endpoint.id, TOKEN, { open: 100, ...asked, ...given })], NOW))[0]!
  const open = async () => {
    await expect
      .poll(async () => {
        await accept({ eventType: "nobody's" })
        return (await fetch()).open
      })
      .toBe(true)
    await query("DELETE FROM lane_wakes")
  }
  if (!more.ordered) await open()
  const handed = async (message: Partial<NewMessage> = {}) => (await accept(message)).lanes[0]?.handed
  const marks = async () =>
    (await query("SELECT handed_token::int AS mark FROM webhook_deliveries ORDER BY seq")).map(
      ({ mark }) => mark,
    )
  const wakes = async () => (await query("SELECT lane_id FROM lane_wakes")).length
  /** As the lane's worker has it. */
  const delivery = async (seq: number) =>
    (await store.listDeliveries({}, newest(99))).find((one) => one.seq === seq) as unknown as ClaimedDelivery
  const outcome = async (seq: number, status: number): Promise<Settlement> => {
    const made = settlement(endpoint.id, TOKEN, await delivery(seq), status)
    return { ...made, attempt: { ...made.attempt!, error: made.change.errorDetail } }
  }
  const attempts = async () => (await store.listAttempts({}, newest(99))).map(({ status }) => status)
  return { ...set, worker, own, accept, fetch, open, handed, marks, wakes, outcome, attempts, delivery }
}

/** The next statement of that name is not made. */
function failOnce({ database }: PostgresStore, name: string): void {
  const { run } = database
  database.run = async (statement, values) => {
    if (statement.name !== name) return run.call(database, statement, values)
    database.run = run
    throw new Error("the statement failed")
  }
}

/** The next statement of that name is made, and nobody is told. */
function loseAnswer({ database }: PostgresStore, name: string): void {
  const { run } = database
  database.run = async (statement, values) => {
    const rows = await run.call(database, statement, values)
    if (statement.name !== name) return rows
    database.run = run
    throw new Error("the connection broke")
  }
}

test("what is accepted for an open lane is marked as in its owner's hands, and wakes nobody", async () => {
  const { accept, marks, wakes, fetch } = await start()
  const { lanes, matched } = await accept()
  expect(matched).toBe(1)
  expect(lanes[0]!.handed).toEqual({ seq: 1, id: expect.stringMatching(/^dlv_/), token: TOKEN })
  expect(await marks()).toEqual([TOKEN])
  expect(await wakes()).toBe(0)
  expect((await fetch()).deliveries).toEqual([])
})

test("what has to wait for its turn is written down as such", async () => {
  const { handed, marks } = await start({}, { starting: 1 })
  for (let i = 0; i < 3; i++) await handed()
  expect(await marks()).toEqual([TOKEN, -TOKEN, -TOKEN])
})

test("it is settled once, and by its mark alone", async () => {
  const { handed, store, outcome, marks, attempts, query } = await start()
  const { seq, id } = (await handed())!
  const settled = await outcome(seq, 200)
  expect(await store.settle([settled])).toEqual(["applied"])
  expect(await store.getDelivery("org_main", id)).toMatchObject({
    status: "delivered",
    attemptCount: 1,
    deliveredAt: NOW,
  })
  expect(await marks()).toEqual([null])
  expect(await store.settle([settled])).toEqual(["stale"])
  expect(await attempts()).toEqual(["succeeded"])
  expect(await query("SELECT sending FROM lanes")).toEqual([{ sending: [] }])
})

test("one that fails waits for its retry, and is fetched then", async () => {
  const { handed, store, outcome, marks, fetch } = await start()
  const { seq } = (await handed())!
  const settled = await outcome(seq, 500)
  expect(await store.settle([settled])).toEqual(["applied"])
  expect(await marks()).toEqual([null])
  const [work] = await store.fetch(
    [laneFetch((await fetch()).endpointId, TOKEN)],
    settled.change.nextRetryAt!,
  )
  expect(work!.deliveries).toMatchObject([{ seq, attemptCount: 1 }])
})

test("one that is given back is fetched again, as if it had not been handed over", async () => {
  const { handed, store, endpoint, delivery, fetch, attempts } = await start()
  const { seq } = (await handed())!
  await store.giveBack([{ ...claimed(endpoint.id, TOKEN, await delivery(seq)), attempt: null }])
  expect((await fetch()).deliveries).toMatchObject([{ seq, stalls: 0 }])
  expect(await attempts()).toEqual([])
})

test("an attempt for one that somebody called off meanwhile is in the log, and is counted once", async () => {
  const { handed, store, outcome, attempts, query } = await start()
  const { seq } = (await handed())!
  const settled = await outcome(seq, 200)
  await query("UPDATE webhook_deliveries SET status = 'dead', dead_reason = 'cancelled'")
  expect(await store.settle([settled])).toEqual(["superseded"])
  expect(await store.settle([settled])).toEqual(["stale"])
  expect(await attempts()).toEqual(["succeeded"])
  expect(
    await query(
      "SELECT attempt_count, a.purge_day = d.purge_day AS together FROM attempts a, webhook_deliveries d",
    ),
  ).toEqual([{ attempt_count: 1, together: true }])
})

test("an attempt for one that somebody reset meanwhile is in the log, and the reset stands", async () => {
  const { handed, store, outcome, attempts, fetch, query } = await start()
  const { seq } = (await handed())!
  const settled = { ...(await outcome(seq, 500)), expectedAttemptCount: 3 }
  expect(await store.settle([settled])).toEqual(["superseded"])
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
  const { handed, store, outcome, attempts, fetch, query } = await start()
  const { seq, id } = (await handed())!
  const settled = await outcome(seq, status)
  const read = async () => (await store.getDelivery("org_main", id))!
  if (whose === "a typed") {
    await query("UPDATE webhook_deliveries SET status = 'dead', dead_reason = 'cancelled'")
    await query("UPDATE webhook_deliveries SET status = 'pending', attempt_count = 0")
  } else {
    await store.amend([calledOff(await read())])
    await store.amend([revived(await read(), NOW + 1000)])
  }
  expect(await store.settle([settled])).toEqual(["superseded"])
  expect(await store.settle([settled])).toEqual(["stale"])
  expect(await attempts()).toEqual([status === 200 ? "succeeded" : "failed"])
  expect(await read()).toMatchObject({ status: "pending", attemptCount: 0 })
  expect((await fetch()).deliveries).toMatchObject([{ seq, attemptCount: 0, stalls: 0 }])
})

test.each<[string, (set: Awaited<ReturnType<typeof start>>) => Promise<unknown>]>([
  ["the worker closes it", ({ store, endpoint }) => store.closeLane(endpoint.id)],
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
    async ({ handed, store, outcome }) => {
      const settled = await outcome((await handed())!.seq, 429)
      await store.settle([{ ...settled, change: { ...settled.change, holdLaneUntil: NOW + 60_000 } }])
    },
  ],
])("nothing is handed over when %s; it is left to whoever is woken", async (_name, change) => {
  const set = await start()
  await change(set)
  await set.query("DELETE FROM lane_wakes")
  expect(await set.handed()).toBeUndefined()
  expect((await set.marks()).at(-1)).toBe(null)
  expect(await set.wakes()).toBe(1)
})

test("another lane of an application whose endpoints somebody changed is closed with it", async () => {
  const set = await start()
  await set.query("UPDATE endpoints SET paused = true")
  for (let i = 0; i < 5; i++) await set.accept({ eventType: "nobody's" })
  expect(await set.handed()).toBeUndefined()
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
  const send = async () => (await store.accept([sample.message("acme", { eventType: "wanted" })]))[0]!.matched
  for (let i = 0; i < 5; i++) expect(await send()).toBe(1)
  await store.updateApplication(application.id, { uid: null }, NOW)
  await store.createApplication(sample.application({ uid: "acme" }))
  for (let i = 0; i < 5; i++) expect(await send()).toBe(0)
})

test("lines, and what is not due yet, are not handed over", async () => {
  const line = await start({ ordered: true })
  for (let i = 0; i < 5; i++) await line.accept({ eventType: "nobody's" })
  expect((await line.fetch()).open).toBe(false)
  const { handed } = await start()
  expect(await handed({ deliverAt: NOW + 1000 })).toBeUndefined()
})

test("whoever takes the lane over finds what was in its owner's hands, and the owner writes nothing more", async () => {
  const { handed, store, endpoint, outcome, own, attempts, marks } = await start({}, { starting: 1 })
  const [sent, waited] = [(await handed())!, (await handed())!]
  const late = [await outcome(sent.seq, 200), await outcome(waited.seq, 500)]
  await own(TOKEN + 1)
  const [work] = await store.fetch([laneFetch(endpoint.id, TOKEN + 1)], NOW)
  // Only the one that was under way may have been the cause.
  expect(work!.deliveries).toMatchObject([
    { seq: sent.seq, stalls: 1 },
    { seq: waited.seq, stalls: 0 },
  ])
  expect(await attempts()).toEqual(["unknown", "unknown"])
  expect(await store.settle(late)).toEqual(["stale", "stale"])
  expect(await marks()).toEqual([null, null])
})

test("one whose answer got lost is fetched by its owner, and was no attempt", async () => {
  const { accept, fetch, store, endpoint, query, attempts } = await start()
  await store.closeLane(endpoint.id)
  await accept()
  await query("UPDATE webhook_deliveries_live SET handed_token = $1", [TOKEN])
  expect((await fetch()).deliveries).toMatchObject([{ seq: 1, stalls: 0 }])
  expect(await attempts()).toEqual([])
})

test("an accept whose answer got lost wakes the lanes that it may have handed something to", async () => {
  const { store, handed, wakes, query } = await start()
  loseAnswer(store, "messages.accept-known")
  await expect(handed()).rejects.toThrow("the connection broke")
  expect(await query("SELECT handed_token::int AS mark FROM webhook_deliveries_live")).toEqual([
    { mark: TOKEN },
  ])
  await expect.poll(wakes).toBe(1)
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
  const { store, endpoint, accept, url } = await start()
  const other = await connect(url)
  await other.query("BEGIN; LOCK TABLE messages IN EXCLUSIVE MODE")
  const order: string[] = []
  const sent = accept().then(({ lanes }) => order.push(lanes[0]!.handed === undefined ? "left" : "handed"))
  await waiting(other, 1)
  const closed = store.closeLane(endpoint.id).then(() => order.push("closed"))
  await other.query("COMMIT")
  await Promise.all([sent, closed])
  expect(order).toEqual(["handed", "closed"])
})

test("a fetch beside a statement that hands something over leaves that to it", async () => {
  const { accept, fetch, query, url } = await start()
  const other = await connect(url)
  // Written, but the statement waits for its end.
  await other.query("BEGIN; LOCK TABLE lane_wakes IN EXCLUSIVE MODE")
  const sent = accept()
  await waiting(other, 1)
  const fetched = fetch()
  await other.query("COMMIT")
  const seq = (await sent).lanes[0]!.handed!.seq
  expect((await fetched).deliveries).toEqual([])
  expect(await query("SELECT seq::int FROM webhook_deliveries_live WHERE handed_token IS NOT NULL")).toEqual([
    { seq },
  ])
})

test("one that is given back is found by a fetch that is asked for with it", async () => {
  const { handed, store, endpoint, delivery, fetch, wakes } = await start()
  const { seq } = (await handed())!
  const claim = claimed(endpoint.id, TOKEN, await delivery(seq))
  const [, work] = await Promise.all([store.giveBack([{ ...claim, attempt: null }]), fetch()])
  expect(work.deliveries).toMatchObject([{ seq }])
  // Whoever has the lane by then is woken.
  expect(await wakes()).toBe(1)
})

test("an outcome whose answer got lost is written once", async () => {
  const { handed, store, outcome, attempts } = await start()
  const settled = await outcome((await handed())!.seq, 200)
  loseAnswer(store, "deliveries.settle-delivered")
  await expect(store.settle([settled])).rejects.toThrow("the connection broke")
  expect(await store.settle([settled])).toEqual(["stale"])
  expect(await attempts()).toEqual(["succeeded"])
})

test("an interrupted attempt for one that was called off meanwhile is in the log, and goes when its delivery does", async () => {
  const { handed, store, endpoint, delivery, attempts, query } = await start()
  const claim = claimed(endpoint.id, TOKEN, await delivery((await handed())!.seq))
  await query("UPDATE webhook_deliveries SET status = 'dead', dead_reason = 'cancelled'")
  await store.giveBack([{ ...claim, attempt: sample.attempt({ status: "unknown" }) }])
  expect(await attempts()).toEqual(["unknown"])
  expect(
    await query("SELECT a.purge_day = d.purge_day AS together FROM attempts a, webhook_deliveries d"),
  ).toEqual([{ together: true }])
})

test("a message that has to wait for somebody holds up none of another application whose endpoints are known", async () => {
  const { handed, store, url } = await start()
  const application = sample.application()
  await store.createApplication(application)
  const idempotency = { key: Buffer.from("key"), digest: Buffer.from("digest") }
  const keyed = (key: string) =>
    store.accept([sample.message(application.id, { idempotency: { ...idempotency, key: Buffer.from(key) } })])
  await keyed("first")
  const other = await connect(url)
  await other.query("BEGIN; LOCK TABLE idempotency IN ACCESS EXCLUSIVE MODE")
  const waits = keyed("second")
  await waiting(other, 1)
  expect(await handed()).toBeDefined()
  await other.query("COMMIT")
  await waits
})

test("what somebody's open transaction holds is left for later, and holds up nothing else", async () => {
  const { accept, fetch, store, endpoint, query, url } = await start()
  await store.closeLane(endpoint.id)
  for (let i = 0; i < 2; i++) await accept()
  await query("UPDATE webhook_deliveries_live SET handed_token = $1 WHERE seq = 1", [TOKEN])
  const other = await connect(url)
  await other.query("BEGIN; SELECT FROM webhook_deliveries_live WHERE seq = 1 FOR UPDATE")
  expect(await fetch()).toMatchObject({ deliveries: [{ seq: 2 }], nextDueAt: NOW + 1000 })
  await other.query("COMMIT")
  expect((await fetch({ inHand: [2] })).deliveries).toMatchObject([{ seq: 1 }])
})

test("one that comes back to life is in nobody's hands, and one that is delivered has no error", async () => {
  const { handed, store, fetch, own, endpoint, query, attempts } = await start()
  await handed()
  await query("UPDATE webhook_deliveries SET status = 'dead', error_detail = 'HTTP 500'")
  await query("UPDATE webhook_deliveries SET status = 'pending', attempt_count = 0")
  await own(TOKEN + 1)
  const [work] = await store.fetch([laneFetch(endpoint.id, TOKEN + 1)], NOW)
  expect(work!.deliveries).toMatchObject([{ stalls: 0 }])
  expect(await attempts()).toEqual([])
  const made = settlement(endpoint.id, TOKEN + 1, work!.deliveries[0]!, 200)
  expect(await store.settle([{ ...made, attempt: { ...made.attempt!, error: null } }])).toEqual(["applied"])
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

test("calls keep their order, whether their endpoints are known or not", async () => {
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

test("calls keep their order when what is known turns out to be old", async () => {
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
  const { store, application, endpoint, query, handed, own, open } = await start()
  await handed()
  // Of the same pipeline, and left behind by an owner before.
  const others = [1, 2].map(() => sample.endpoint(application.id, { eventTypes: ["another"] }))
  for (const other of others) await store.createEndpoint(other)
  await own(TOKEN)
  await query("UPDATE lanes SET sending = '{99}', since = '{1}', sending_token = 1 WHERE id <> $1", [
    endpoint.id,
  ])
  // What is known of the application's endpoints is old by now.
  await open()
  await store.closeLane(endpoint.id)
  failOnce(store, "lanes.take-over")
  const asked = [endpoint, ...others].map(({ id }) => laneFetch(id, TOKEN, { open: 100 }))
  await expect(store.fetch(asked, NOW)).rejects.toThrow("the statement failed")
  expect(await handed()).toBeUndefined()
})

test("a lane that is closed while it is asked for stays closed, whatever the answer says", async () => {
  const { store, endpoint, url, fetch, handed } = await start()
  await store.updateEndpoint(endpoint.id, { description: "changed" }, NOW)
  const other = await connect(url)
  await other.query("BEGIN; SELECT FROM lanes FOR UPDATE")
  const fetched = fetch()
  await waiting(other, 1)
  await store.closeLane(endpoint.id)
  await other.query("COMMIT")
  expect(await fetched).toMatchObject({ open: false, endpoint: { description: "changed" } })
  expect(await handed()).toBeUndefined()
})

test("a delivery that cannot be given back now, because somebody holds it, is found when he is done", async () => {
  const { handed, store, endpoint, delivery, fetch, url } = await start()
  const { seq } = (await handed())!
  const claim = claimed(endpoint.id, TOKEN, await delivery(seq))
  const other = await connect(url)
  await other.query("BEGIN; SELECT FROM webhook_deliveries_live FOR UPDATE")
  const [, work] = await Promise.all([store.giveBack([{ ...claim, attempt: null }]), fetch()])
  expect(work).toMatchObject({ deliveries: [], open: false })
  await other.query("COMMIT")
  expect((await fetch()).deliveries).toMatchObject([{ seq }])
})

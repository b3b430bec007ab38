/** The health of endpoints: in words, with numbers, one by one and in lists. */
import { expect, test } from "vitest"
import type { HealthQuery } from "../../src/resources/endpoints.ts"
import type { Store } from "../../src/store/store.ts"
import { START, TestClock } from "../support/clock.ts"
import { Harness, type HarnessOptions } from "../support/harness.ts"
import { VirtualReceiver } from "../support/virtual-receiver.ts"

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const OTHER = "org_2rTestTestTestTestTestTestTe"
/** One attempt for each message, and no breaker. */
const ONCE = { delays: [60], maxAttempts: 1, breaker: false } as const

/** In the middle of an hour, so that half of the hour before counts. */
async function start(options: HarnessOptions = {}) {
  const clock = new TestClock(START + 30 * MINUTE)
  const receiver = new VirtualReceiver(clock)
  const harness = await Harness.start({ clock, transport: receiver, random: () => 0.5, ...options })
  let attempts = 0
  /** Sends a message to each endpoint, which gets this answer. */
  const attempt = async (path: string, ...answers: readonly number[]) => {
    for (const answer of answers) {
      receiver.always(path, answer)
      await harness.send()
      await harness.published("delivery.attempt", ++attempts)
    }
    await harness.calm()
  }
  const health = (endpoint: string) => harness.posthorn.endpoints.health("acme", endpoint)
  return { harness, clock, receiver, attempt, health }
}

test("an endpoint without attempts is healthy, and has no numbers", async () => {
  const { harness, health } = await start()
  const id = await harness.endpoint({ uid: "main" })
  const none = { attempts: 0, successRate: null, p95Ms: null }
  expect(await health("main")).toEqual({
    endpointId: id,
    endpointUid: "main",
    endpointUrl: harness.receiver.url("/"),
    appId: (await harness.posthorn.applications.get("acme")).id,
    health: "healthy",
    since: null,
    why: "no attempts in the last hour",
    lastHour: none,
    lastDay: none,
    failures: 0,
    lastSuccessAt: null,
    oldestWaitingAt: null,
  })
})

test("degraded under 95 % of the last hour, and healthy again when the failures are an hour old", async () => {
  const { harness, clock, attempt, health } = await start()
  const id = await harness.endpoint({ retry: ONCE })
  // The hour began before.
  const createdAt = new Date(clock.now())
  await attempt("/", 500, 200, 200, 200)
  expect(await health(id)).toMatchObject({
    health: "degraded",
    since: createdAt,
    why: "75 % of 4 attempts in the last hour succeeded",
    lastHour: { attempts: 4, successRate: 0.75 },
    lastDay: { attempts: 4, successRate: 0.75 },
    failures: 0,
    lastSuccessAt: new Date(clock.now()),
  })
  const succeededAt = clock.now()
  clock.advance(2 * HOUR)
  expect(await health(id)).toMatchObject({
    health: "healthy",
    lastHour: { attempts: 0, successRate: null, p95Ms: null },
    lastDay: { attempts: 4, successRate: 0.75 },
    lastSuccessAt: new Date(succeededAt),
  })
  clock.advance(48 * HOUR)
  expect(await health(id)).toMatchObject({
    lastDay: { attempts: 0, successRate: null },
    lastSuccessAt: new Date(succeededAt),
  })
})

test("the 95th percentile is that of the last hour, and of the last day", async () => {
  const { harness, clock, receiver, health } = await start()
  const id = await harness.endpoint()
  receiver.always("/", 200, 2000)
  await harness.send()
  await harness.calm()
  clock.advance(2000)
  await harness.published("delivery.delivered", 1)
  await harness.calm()
  const { lastHour } = await health(id)
  expect(lastHour.p95Ms).toBeGreaterThan(1000)
  expect(lastHour.p95Ms).toBeLessThan(2500)
  clock.advance(2 * HOUR)
  expect(await health(id)).toMatchObject({ lastHour: { p95Ms: null }, lastDay: { p95Ms: lastHour.p95Ms } })
})

test("failing: since the first failure, with the last error, the count and what waits", async () => {
  const { harness, clock, attempt, health } = await start()
  const id = await harness.endpoint({ retry: { delays: [600], maxAttempts: 9, breaker: false } })
  await attempt("/", 200)
  const succeededAt = new Date(clock.now())
  clock.advance(MINUTE)
  const failedAt = new Date(clock.now())
  await attempt("/", 500, 500, 500, 503)
  expect(await health(id)).toMatchObject({ health: "degraded", failures: 4 })
  clock.advance(MINUTE)
  await attempt("/", 503)
  const disabledAt = new Date(failedAt.getTime() + 5 * 24 * HOUR).toISOString().replace(".000Z", "Z")
  expect(await health(id)).toMatchObject({
    health: "failing",
    since: failedAt,
    why: `the last 5 attempts failed; last error: HTTP 503; without a success it is disabled at ${disabledAt} at the earliest`,
    failures: 5,
    lastSuccessAt: succeededAt,
    oldestWaitingAt: failedAt,
  })
  await attempt("/", 200)
  expect(await health(id)).toMatchObject({ health: "degraded", failures: 0 })
})

test("open: the circuit breaker, half-open, by hand, and closed again", async () => {
  const { harness, clock, attempt, health } = await start()
  const { endpoints } = harness.posthorn
  const id = await harness.endpoint({ retry: { delays: [7200], maxAttempts: 9, breaker: { failures: 3 } } })
  const sentAt = new Date(clock.now())
  await attempt("/", 503, 503, 503)
  const cause = "the circuit breaker opened after 3 failures in a row; last error: HTTP 503"
  expect(await health(id)).toMatchObject({
    health: "open",
    since: sentAt,
    why: `${cause}; no request before 2031-05-18T18:30:30Z`,
    failures: 3,
    oldestWaitingAt: sentAt,
  })
  clock.advance(31_000)
  expect(await health(id)).toMatchObject({
    health: "open",
    since: sentAt,
    why: `${cause}; the next delivery that is due probes the endpoint`,
  })
  await endpoints.reset("acme", id)
  expect(await health(id)).toMatchObject({ health: "failing" })
  await endpoints.trip("acme", id)
  expect(await health(id)).toMatchObject({
    health: "open",
    since: new Date(clock.now()),
    why: expect.stringContaining("the circuit breaker was opened by hand"),
  })
})

test("paused and disabled: since when and why, until they end", async () => {
  const { harness, clock, attempt, health } = await start()
  const { endpoints } = harness.posthorn
  const id = await harness.endpoint()
  await endpoints.pause("acme", id)
  const pausedAt = new Date(clock.now())
  clock.advance(MINUTE)
  await endpoints.pause("acme", id)
  expect(await health(id)).toMatchObject({ health: "paused", since: pausedAt })
  expect(await endpoints.get("acme", id)).toMatchObject({ paused: true, pausedAt })
  await endpoints.update("acme", id, { disabled: true })
  expect(await health(id)).toMatchObject({
    health: "disabled",
    since: new Date(clock.now()),
    why: "disabled by hand",
  })
  await endpoints.update("acme", id, { disabled: false })
  await endpoints.resume("acme", id)
  expect(await health(id)).toMatchObject({ health: "healthy", since: null })
  expect(await endpoints.get("acme", id)).toMatchObject({ paused: false, pausedAt: null })
  await attempt("/", 410)
  expect(await health(id)).toMatchObject({
    health: "disabled",
    since: new Date(clock.now()),
    why: "disabled: the receiver answered 410 Gone",
  })
})

test("an endpoint that was disabled for failing says for how long, and fails until its next success", async () => {
  const { harness, clock, receiver, health } = await start()
  const id = await harness.endpoint({ retry: { delays: [3600], maxAge: 30 * 86_400, breaker: false } })
  receiver.always("/", 404)
  await harness.send()
  await harness.published("delivery.attempt", 1)
  for (let hour = 0; hour < 121; hour++) {
    clock.advance(HOUR)
    await harness.calm()
  }
  expect(await health(id)).toMatchObject({
    health: "disabled",
    why: "disabled: no success for 5 days; last error: HTTP 404",
  })
  await harness.posthorn.endpoints.update("acme", id, { disabled: false })
  await harness.calm()
  expect(await health(id)).toMatchObject({ health: "failing" })
})

/** An endpoint in each state, oldest first, and a second application. */
async function oneOfEach(options: HarnessOptions = {}) {
  const started = await start(options)
  const { harness } = started
  const { applications, endpoints } = harness.posthorn
  const at = async (uid: string) => harness.endpoint({ uid, retry: ONCE, eventTypes: [uid] }, `/${uid}`)
  const send = async (uid: string, answers: readonly number[]) => {
    for (const answer of answers) {
      started.receiver.always(`/${uid}`, answer)
      await harness.posthorn.send("acme", { eventType: uid, payload: {} })
      await harness.calm()
    }
  }
  for (const uid of ["idle", "degraded", "failing", "open", "paused", "disabled", "busy"]) await at(uid)
  await endpoints.update("acme", "open", { retry: { ...ONCE, breaker: true } })
  await endpoints.trip("acme", "open")
  await endpoints.pause("acme", "paused")
  await endpoints.update("acme", "disabled", { disabled: true })
  await send("degraded", [500, 200])
  await send("failing", [500, 500, 500, 500, 500])
  await send("busy", [200, 200])
  await applications.create({ uid: "other", name: "Other" })
  await endpoints.create("other", { uid: "elsewhere", url: harness.receiver.url("/") })
  return started
}

test("lists by health, of an application and of all, in pages in both directions", async () => {
  const { harness } = await oneOfEach()
  const { endpoints } = harness.posthorn
  const uids = async (query: HealthQuery) =>
    (await Array.fromAsync(endpoints.listHealth(query))).map(({ endpointUid }) => endpointUid)
  expect((await endpoints.listHealth({ app: "acme" })).data).toMatchObject([
    { endpointUid: "idle", health: "healthy" },
    { endpointUid: "degraded", health: "degraded" },
    { endpointUid: "failing", health: "failing" },
    { endpointUid: "open", health: "open" },
    { endpointUid: "paused", health: "paused" },
    { endpointUid: "disabled", health: "disabled" },
    { endpointUid: "busy", health: "healthy" },
  ])
  for (const health of ["degraded", "failing", "open", "paused", "disabled"] as const)
    expect(await uids({ health })).toEqual([health])
  expect(await uids({ health: "healthy" })).toEqual(["idle", "busy", "elsewhere"])
  expect(await uids({ app: "other", health: ["healthy", "open"] })).toEqual(["elsewhere"])
  const several: HealthQuery = { health: ["degraded", "open", "disabled"] }
  expect(await uids({ ...several, limit: 1 })).toEqual(["degraded", "open", "disabled"])
  expect(await uids({ ...several, limit: 2, order: "descending" })).toEqual(["disabled", "open", "degraded"])
  const { previous } = await endpoints.listHealth({ ...several, limit: 250 })
  expect((await endpoints.listHealth({ ...several, cursor: previous })).data).toEqual([])
  const last = await endpoints.listHealth({ health: "disabled" })
  const before = await endpoints.listHealth({ ...several, limit: 1, cursor: last.previous })
  expect(before).toMatchObject({ data: [{ endpointUid: "open" }], done: false })
})

test("a page of any length takes two reads beside that of its endpoints", async () => {
  const reads: string[] = []
  const wrapStore = (store: Store) =>
    new Proxy(store, {
      get(target, name) {
        const method = Reflect.get(target, name)
        if (typeof method !== "function") return method
        return (...args: unknown[]) => {
          reads.push(String(name))
          return Reflect.apply(method, target, args)
        }
      },
    })
  const { harness } = await oneOfEach({ wrapStore })
  reads.length = 0
  await harness.posthorn.endpoints.listHealth({ limit: 250 })
  expect(reads.toSorted()).toEqual(["getActivity", "listEndpoints", "sumRollups"])
})

test("a filter finds a state beyond the first hundreds of endpoints, from either end", async () => {
  const { harness } = await start()
  const { endpoints } = harness.posthorn
  const own = await harness.endpoint()
  const copied =
    "org_id, app_id, url, description, headers, metadata, ordered, disabled, secrets, version, created_at, updated_at"
  const idOf = (n: number) => `ep_${"0".repeat(24)}${n}`
  // 600 before the first one, all paused but for two.
  await harness.sql(`
    WITH RECURSIVE n (i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 699)
    INSERT INTO endpoints (id, paused, ${copied})
    SELECT '${idOf(0).slice(0, -1)}' || n.i, n.i NOT IN (200, 600), ${copied} FROM n, endpoints WHERE id = '${own}'`)
  const list = async (query: HealthQuery) => {
    const { data, done } = await endpoints.listHealth(query)
    return { ids: data.map(({ endpointId }) => endpointId), done }
  }
  const healthy: HealthQuery = { health: "healthy", limit: 3 }
  const found = [idOf(200), idOf(600), own]
  expect(await list(healthy)).toEqual({ ids: found, done: true })
  expect(await list({ ...healthy, order: "descending" })).toEqual({ ids: found.toReversed(), done: true })
  expect(await list({ ...healthy, cursor: `-${own}` })).toEqual({ ids: found.slice(0, 2), done: true })
  expect(await list({ ...healthy, limit: 1, cursor: `-${own}` })).toEqual({ ids: [idOf(600)], done: false })
  expect(await Array.fromAsync(endpoints.listHealth({ health: "paused", limit: 250 }))).toHaveLength(598)
})

test("another tenant's endpoints are not listed", async () => {
  const { harness } = await oneOfEach()
  const other = harness.posthorn.tenant(OTHER)
  expect((await other.endpoints.listHealth()).data).toEqual([])
  await expect(other.endpoints.health("acme", "open")).rejects.toMatchObject({ code: "not_found" })
  await expect(other.endpoints.listHealth({ app: "acme" })).rejects.toMatchObject({ code: "not_found" })
})

test("an operator's SQL harms nothing but that endpoint", async () => {
  const { harness } = await oneOfEach()
  const odd = JSON.stringify({
    phase: "open",
    since: 9e99,
    failingSince: 9e99,
    isFailing: true,
    lastError: 7,
  })
  await harness.sql(`UPDATE endpoints SET protection = '${odd}', paused_at = 1 WHERE uid = 'idle'`)
  await harness.sql("UPDATE endpoints SET protection = 'x', disabled_reason = 'x' WHERE uid = 'disabled'")
  const { data } = await harness.posthorn.endpoints.listHealth({ app: "acme" })
  expect(data).toHaveLength(7)
  expect(data.find(({ endpointUid }) => endpointUid === "idle")).toMatchObject({
    health: "failing",
    since: null,
  })
  expect(data.find(({ endpointUid }) => endpointUid === "disabled")).toMatchObject({
    health: "disabled",
    why: "disabled; the reason was not recorded",
  })
})

test.each<[unknown, string]>([
  [{ health: "sick" }, "health must be one of healthy, degraded, failing, open, offline, paused, disabled"],
  [{ health: [] }, "health must be one of"],
  [{ state: "open" }, "state is unknown"],
  [{ app: "nobody" }, 'there is no application "nobody"'],
])("%j is refused", async (query, message) => {
  const { harness } = await start()
  await expect(harness.posthorn.endpoints.listHealth(query as HealthQuery)).rejects.toThrow(message)
})

/** What retries cost: reports of a real engine's attempts, by group, with prices, and with other limits. */
import { expect, test } from "vitest"
import type { PosthornOptions } from "../../src/options.ts"
import type { CostQuery } from "../../src/resources/cost.ts"
import { HOUR_MS } from "../../src/store/rollups.ts"
import { START, TestClock } from "../support/clock.ts"
import { Harness } from "../support/harness.ts"
import { VirtualReceiver } from "../support/virtual-receiver.ts"

const UNPROTECTED = { breaker: false, budget: false, adaptive: false, autoDisable: false } as const
/** Attempts at the ages 0, 60, 660 and 4260 s. */
const PATIENT = { delays: [60, 600, 3600], maxAttempts: 4, jitter: "none", ...UNPROTECTED } as const

async function start(options: Partial<PosthornOptions> = {}) {
  const clock = new TestClock(START)
  const receiver = new VirtualReceiver(clock)
  const harness = await Harness.start({ clock, transport: receiver, ...options })
  /** The number of the attempt that succeeds, by message; without a number, none does. */
  const succeedsAt = new Map<string, number>()
  const tries = new Map<string, number>()
  const answer = ({ messageId, path }: { readonly messageId: string; readonly path: string }) => {
    const key = `${path} ${messageId}`
    const number = (tries.get(key) ?? 0) + 1
    tries.set(key, number)
    return { answer: number >= (succeedsAt.get(path) ?? Number.POSITIVE_INFINITY) ? 200 : 500 }
  }
  /** An endpoint that gets messages of its own event type. */
  const endpoint = async (uid: string, at: number | null, retry: object | string | null = PATIENT) => {
    if (at !== null) succeedsAt.set(`/${uid}`, at)
    receiver.by(`/${uid}`, answer)
    const more = retry === null ? {} : { retry: retry as never }
    return harness.endpoint({ uid, eventTypes: [uid], ...more }, `/${uid}`)
  }
  const send = async (uid: string, count: number) => {
    for (let i = 0; i < count; i++) await harness.send({ n: 1 }, { eventType: uid })
  }
  /** Until nothing is left to be tried. */
  const finish = async () => {
    for (const seconds of [0, 60, 600, 3600]) {
      clock.advance(seconds * 1000)
      await harness.poll()
      await harness.quiet()
    }
    const { pending, failed } = await harness.posthorn.stats()
    expect([pending, failed]).toEqual([0, 0])
  }
  const report = (query?: CostQuery) => harness.posthorn.cost.report(query)
  return { harness, clock, endpoint, send, finish, report }
}

/** Ten messages for each of endpoints that deliver at the first, the second and the fourth attempt; two for an endpoint that is down. */
async function busy(options: Partial<PosthornOptions> = {}, retry: object = PATIENT) {
  const stage = await start(options)
  await stage.endpoint("one", 1, retry)
  await stage.endpoint("two", 2, retry)
  await stage.endpoint("four", 4, retry)
  await stage.endpoint("down", null, retry)
  for (const [uid, count] of Object.entries({ one: 10, two: 10, four: 10, down: 2 }))
    await stage.send(uid, count)
  await stage.finish()
  return stage
}

test("attempts for each delivered, wasted share, success rate of retries and the yield of each attempt", async () => {
  const { report, clock } = await busy()
  const bytesOut = 78 * '{"n":1}'.length
  const found = await report()
  expect(found.total).toMatchObject({
    attempts: 78,
    delivered: 30,
    dead: 2,
    retries: 46,
    attemptsPerDelivered: 78 / 30,
    wastedShare: 48 / 78,
    retrySuccessRate: 20 / 46,
    bytesOut,
    slotSeconds: 0,
    price: null,
  })
  expect(found.byAttempt.map(({ number, attempts, delivered }) => [number, attempts, delivered])).toEqual([
    [1, 32, 10],
    [2, 22, 10],
    [3, 12, 0],
    [4, 12, 10],
  ])
  expect(found.byAttempt[3]).toEqual({
    number: 4,
    attempts: 12,
    delivered: 10,
    successRate: 10 / 12,
    costShare: 12 / 78,
    deliveredShare: 10 / 30,
  })
  expect(found).toMatchObject({ currency: null, groups: null, groupsLeftOut: 0, whatIf: null })
  expect(found.until.getTime()).toBe(Math.ceil(clock.now() / HOUR_MS) * HOUR_MS)
  expect(found.until.getTime() - found.since.getTime()).toBe(7 * 24 * HOUR_MS)
})

test("by endpoint, application, event type and policy, the most expensive first, up to a limit", async () => {
  const { report, endpoint, send, finish, harness } = await busy()
  await endpoint("preset", 1, "jobs")
  await endpoint("default", 1, null)
  await harness.posthorn.policies.put("mine", PATIENT)
  await endpoint("named", 1, "mine")
  for (const uid of ["preset", "default", "named"]) await send(uid, 1)
  await finish()
  const groups = async (query: CostQuery) => {
    const { groups: found } = await report(query)
    return found!.map(({ key, name, attempts, delivered }) => [name ?? key, attempts, delivered])
  }
  const acme = ["acme", 81, 33]
  expect(await groups({ by: "application" })).toEqual([acme])
  expect((await groups({ by: "endpoint" })).slice(0, 4)).toEqual([
    ["four", 40, 10],
    ["two", 20, 10],
    ["one", 10, 10],
    ["down", 8, 0],
  ])
  expect(await groups({ by: "eventType", limit: 2 })).toEqual([
    ["four", 40, 10],
    ["two", 20, 10],
  ])
  expect(await report({ by: "eventType", limit: 2 })).toMatchObject({ groupsLeftOut: 5 })
  expect((await groups({ by: "policy" })).toSorted()).toEqual([
    ["jobs", 1, 1],
    ["mine", 1, 1],
    ["own", 78, 30],
    ["standard", 1, 1],
  ])
  expect(await groups({ by: "endpoint", eventType: "two" })).toEqual([["two", 20, 10]])
  expect(await report({ app: "acme", endpoint: "two" })).toMatchObject({ total: { attempts: 20 } })
  const other = harness.posthorn.tenant("org_2rTestTestTestTestTestTestTe")
  expect(await other.cost.report({ by: "endpoint" })).toMatchObject({ total: { attempts: 0 }, groups: [] })
})

test("the most expensive endpoints that fail now, with their health; not those that recovered or are deleted", async () => {
  const { report, endpoint, send, finish, harness, clock } = await start()
  await endpoint("down", null)
  await endpoint("worse", null)
  await endpoint("gone", null)
  await endpoint("slow", 4)
  for (const [uid, count] of Object.entries({ down: 2, worse: 5, gone: 9, slow: 3 })) await send(uid, count)
  await finish()
  await harness.posthorn.endpoints.delete("acme", "gone")
  // The failures of `slow` are older than an hour, and it delivered since.
  clock.advance(2 * HOUR_MS)
  const { groups } = await report({ failing: true })
  expect(groups!.map(({ name, attempts, health }) => [name, attempts, health])).toEqual([
    ["worse", 20, "failing"],
    ["down", 8, "failing"],
  ])
  expect(groups![0]!.why).toMatch(/HTTP 500/)
  const limited = await report({ failing: true, limit: 1 })
  expect(limited).toMatchObject({ groups: [{ name: "worse" }], groupsLeftOut: 1 })
})

test("prices make money of the units, and order the groups", async () => {
  const cost = { perThousandAttempts: 10, perGigabyteOut: 1_000_000, currency: "EUR" }
  const { report } = await busy({ cost })
  const found = await report({ by: "endpoint", limit: 1, maxAttempts: 2 })
  const price = (attempts: number) => attempts * (0.01 + (7 * 1_000_000) / 1e9)
  expect(found.currency).toBe("EUR")
  expect(found.total.price).toBeCloseTo(price(78))
  expect(found.groups![0]!.price).toBeCloseTo(price(40))
  expect(found.byAttempt[0]!.costShare).toBeCloseTo(32 / 78)
  expect(found.whatIf!.saved.atLeast.price).toBeCloseTo(price(24))
})

test.each([
  ["maxAttempts", { maxAttempts: 3 }],
  ["maxAge", { maxAge: 1000 }],
  ["both", { maxAttempts: 2, maxAge: 30 }],
])("a what-if for %s agrees with an engine that has this policy", async (_, limits) => {
  const [now, other] = await Promise.all([busy(), busy({}, { ...PATIENT, ...limits })])
  const [{ total, whatIf }, { total: otherTotal }] = [await now.report(limits), await other.report()]
  const [attempts, lost] = [total.attempts - otherTotal.attempts, total.delivered - otherTotal.delivered]
  expect(attempts).toBeGreaterThan(0)
  expect(whatIf!.saved).toMatchObject({ atLeast: { attempts }, atMost: { attempts } })
  expect(whatIf!.lost).toEqual({ atLeast: lost, atMost: lost })
  expect(otherTotal.dead - total.dead).toBe(lost)
})

test("a what-if says in a sentence what fewer attempts save and lose", async () => {
  const { report } = await busy()
  const text = async (query: CostQuery) => (await report(query)).whatIf!.text
  expect(await text({ maxAttempts: 3 })).toBe("stop after 3 attempts: −15 % attempts, 10 of 30 lost")
  expect(await text({ maxAttempts: 4 })).toBe("stop after 4 attempts: 0 % attempts, 0 of 30 lost")
  expect(await text({ maxAge: 660 })).toBe("stop at an age of 660 s: −31 % attempts, 10 of 30 lost")
  expect(await text({ maxAge: 661 })).toBe("stop at an age of 661 s: −15 % attempts, 10 of 30 lost")
})

test("a what-if has bounds where attempts without a recorded age may lie on both sides", async () => {
  const { report, harness } = await busy()
  await harness.sql(
    "UPDATE attempt_rollups SET aged = 0, age_min_ms = NULL, age_max_ms = NULL WHERE attempt_number = 2",
  )
  const { whatIf } = await report({ maxAge: 1000 })
  expect(whatIf).toMatchObject({
    saved: { atLeast: { attempts: 12 }, atMost: { attempts: 34 } },
    lost: { atLeast: 10, atMost: 20 },
    text: "stop at an age of 1000 s: −15 to −44 % attempts, 10 to 20 of 30 lost",
  })
})

test.each<[string, unknown, string, RegExp]>([
  [
    "more attempts than were made",
    { maxAttempts: 5 },
    "maxAttempts",
    /must be at most 4: no delivery had more/,
  ],
  ["numbers that the sums do not tell apart", { maxAttempts: 20 }, "maxAttempts", /between 1 and 19/],
  [
    "an age that no delivery reached",
    { maxAge: 4261 },
    "maxAge",
    /must be lower: no delivery was tried at this age/,
  ],
  ["no age", { maxAge: 0 }, "maxAge", /between 0.001 and/],
  ["an unknown group", { by: "country" }, "by", /must be one of endpoint, application, eventType, policy/],
  ["failing groups that are no endpoints", { failing: true, by: "policy" }, "by", /must be endpoint/],
  ["an endpoint without its application", { endpoint: "one" }, "app", /is required/],
  ["a span that ends before it begins", { since: START, until: START - 1 }, "since", /must be before until/],
  ["a span whose sums are gone", { until: START - 2300 * HOUR_MS }, "until", /90 days/],
  ["no groups", { by: "endpoint", limit: 0 }, "limit", /between 1 and 250/],
  ["an unknown field", { sinse: 1 }, "sinse", /sinse/],
])("refuses %s, with the field", async (_what, query, field, message) => {
  const { report } = await busy()
  await expect(report(query as CostQuery)).rejects.toMatchObject({
    code: "invalid_input",
    field,
    message: expect.stringMatching(message),
  })
})

test("a span from before the kept sums begins with the first kept hour, and the report says so", async () => {
  const { report, harness } = await start()
  const { since } = await report({ since: 0 })
  const agoMs = harness.clock.now() - since.getTime()
  expect(agoMs).toBeLessThan(90 * 24 * HOUR_MS)
  expect(agoMs).toBeGreaterThanOrEqual((90 * 24 - 1) * HOUR_MS)
  const within = since.getTime() + HOUR_MS
  expect((await report({ since: within })).since.getTime()).toBe(within)
})

test("a span without attempts costs nothing, with any limit", async () => {
  const { report } = await start()
  const { total, byAttempt, whatIf } = await report({ maxAttempts: 6, maxAge: 60 })
  expect(total).toMatchObject({
    attempts: 0,
    attemptsPerDelivered: null,
    wastedShare: null,
    retrySuccessRate: null,
  })
  expect(byAttempt).toEqual([])
  expect(whatIf!.text).toBe("stop after 6 attempts or at an age of 60 s: 0 % attempts, 0 of 0 lost")
})

test("rows that were typed by hand do not exceed the largest exact number", async () => {
  const { report, harness } = await busy()
  await harness.sql("UPDATE attempt_rollups SET attempts = 9007199254740991, bytes_out = 9007199254740991")
  const { total, byAttempt } = await report({ by: "endpoint" })
  expect([total.attempts, total.bytesOut]).toEqual([Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER])
  expect(byAttempt[0]!.attempts).toBe(Number.MAX_SAFE_INTEGER)
})

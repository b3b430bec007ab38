/** The circuit breaker: an outage of a receiver stays small and ends well. */
import { expect, test } from "vitest"
import type { PolicyInput } from "../../src/core/policy.ts"
import { NO_INSTRUMENTS } from "../../src/observe/instruments.ts"
import type { BreakerChangedEvent } from "../../src/observe/public-events.ts"
import type { Harness, HarnessOptions } from "../support/harness.ts"
import { sendMany, virtualTime } from "../support/virtual-time.ts"

const SECOND = 1000
const MINUTE = 60_000
/** Retries come after the outage, so that each request is a first attempt or a probe. */
const PATIENT: PolicyInput = { delays: [7200], maxAttempts: 5 }

async function start(options: HarnessOptions = {}) {
  const { harness, receiver, pass } = await virtualTime(options)
  const changes: BreakerChangedEvent[] = []
  for (const to of ["opened", "half_open", "closed"] as const)
    harness.posthorn.on(`endpoint.breaker.${to}`, (event) => void changes.push(event))
  return { harness, receiver, changes, pass, types: () => changes.map(({ type }) => type.split(".").at(-1)) }
}

const attemptCounts = async (harness: Harness, endpointId: string) =>
  (await harness.rows())
    .filter((row) => row.webhook_id === endpointId)
    .map((row) => Number(row.attempt_count))

test("down for an hour with 10 000 waiting: few requests, no attempt lost, and a ramp at the end", {
  timeout: 180_000,
}, async () => {
  const { harness, receiver, pass } = await start()
  receiver.always("/down", 500)
  const retry = { ...PATIENT, breaker: { ramp: 100 } }
  const id = await harness.endpoint({ eventTypes: ["invoice.paid"], retry }, "/down")
  await harness.endpoint({ eventTypes: ["invoice.paid"] }, "/fine")
  await harness.endpoint({ eventTypes: ["beside"] }, "/beside")
  const latenciesMs: number[] = []
  /** Sends to the healthy endpoint once in each step. */
  const passBesideMessages = async (ms: number, stepMs: number) => {
    for (let passed = 0; passed < ms; passed += stepMs) {
      const sentAt = harness.clock.now()
      await harness.posthorn.send("acme", { eventType: "beside", payload: {} })
      await harness.calm()
      latenciesMs.push(receiver.to("/beside")[latenciesMs.length]!.at - sentAt)
      await pass(Math.min(stepMs, ms - passed), stepMs)
    }
  }
  await sendMany(harness, 10_000)
  await harness.published("delivery.delivered", 10_000)
  await harness.calm()
  await passBesideMessages(60 * MINUTE, 30_000)

  const during = receiver.to("/down").length
  expect(during).toBeLessThanOrEqual(32 + 20)
  const counts = await attemptCounts(harness, id)
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(during)
  expect(Math.max(...counts)).toBe(1)

  receiver.always("/down", 200)
  const { breaker } = await harness.posthorn.endpoints.get("acme", id)
  const until = breaker.until!.getTime()
  await passBesideMessages(until - harness.clock.now(), 30_000)
  expect(receiver.to("/down")[during]!.at).toBe(until)
  for (let seconds = 0; seconds < 200 && receiver.to("/down").length < 10_000; seconds++)
    await passBesideMessages(1000, 1000)
  const arrivals = receiver.to("/down").map(({ at }) => at)
  expect(arrivals).toHaveLength(10_000)
  const ramped = arrivals.slice(during + 1)
  // Of 101 requests in a row, the last comes at least a second after the first.
  const spansMs = ramped.slice(100).map((at, i) => at - ramped[i]!)
  expect(Math.min(...spansMs)).toBeGreaterThanOrEqual(1000)
  expect(Math.max(...latenciesMs)).toBe(0)

  await pass(180 * MINUTE, 10 * MINUTE)
  await harness.published("delivery.delivered", 20_000 + latenciesMs.length)
  expect(await harness.posthorn.endpoints.get("acme", id)).toMatchObject({ breaker: { state: "closed" } })
})

test("an ordered endpoint keeps its order through an outage", async () => {
  const { harness, receiver, pass } = await start()
  const id = await harness.endpoint({ ordered: true, retry: { delays: [5], maxAttempts: 100 } })
  receiver.always("/", 500)
  await sendMany(harness, 50)
  await harness.calm()
  await pass(30 * MINUTE, 5000)
  expect(receiver.to("/").length).toBeLessThanOrEqual(5 + 10)
  receiver.requests.length = 0
  receiver.always("/", 200)
  await pass(11 * MINUTE, 1000)
  const arrived = receiver.to("/").map(({ body }) => JSON.parse(body).n)
  expect(arrived).toEqual(Array.from({ length: 50 }, (_, n) => n))
  await harness.send()
  await harness.published("delivery.delivered", 51)
  expect(await harness.posthorn.endpoints.get("acme", id)).toMatchObject({ breaker: { state: "closed" } })
})

test("events tell when the breaker opens, probes, and closes; a delivery says that it waits for it", async () => {
  const { harness, receiver, pass, types, changes } = await start()
  const id = await harness.endpoint({ retry: PATIENT })
  receiver.always("/", 503)
  await sendMany(harness, 6)
  await harness.calm()
  expect(types()).toEqual(["opened"])
  const until = harness.clock.now() + 30_000
  expect(changes[0]).toMatchObject({ webhook_id: id, until, failures: 5, last_error: "HTTP 503: answer 503" })
  const waiting = await harness.posthorn.deliveries.list({ status: "pending" })
  expect(waiting.data).toMatchObject([{ waitReason: "breaker", nextRetryAt: new Date(until) }])
  expect(await harness.posthorn.endpoints.get("acme", id)).toMatchObject({
    breaker: { state: "open", until: new Date(until) },
  })
  receiver.always("/", 200)
  await pass(30_000, 10_000)
  expect(types()).toEqual(["opened", "half_open", "closed"])
  await harness.published("delivery.delivered", 1)
})

test("messages that are accepted while the breaker is open claim no lane", async () => {
  let claimed = 0
  const { harness, receiver, pass } = await start({
    instruments: {
      ...NO_INSTRUMENTS,
      lanesClaimed: (lanes) => {
        claimed += lanes
      },
    },
  })
  await harness.endpoint({ retry: PATIENT })
  receiver.always("/", 500)
  await sendMany(harness, 5)
  await harness.calm()
  await pass(1000, 1000)
  const before = claimed
  for (let i = 0; i < 5; i++) {
    await harness.send()
    await pass(1000, 1000)
    await harness.poll()
  }
  expect(claimed - before).toBe(0)
  expect(receiver.to("/")).toHaveLength(5)
})

test("the state survives a restart: the next process waits, and sends one probe", async () => {
  const { harness, receiver, pass } = await start()
  await harness.endpoint({ retry: PATIENT })
  receiver.always("/", 500)
  await sendMany(harness, 20)
  await harness.calm()
  await harness.restart()
  await pass(20_000, 5000)
  expect(receiver.to("/")).toHaveLength(5)
  await pass(10_000, 5000)
  expect(receiver.to("/")).toHaveLength(6)
})

test("a delivery whose age ends while the breaker is open gets one attempt", async () => {
  const { harness, receiver, pass } = await start()
  await harness.endpoint({ concurrency: 1, retry: { delays: [5], maxAge: 60, breaker: { open: 60 } } })
  receiver.always("/", 500)
  await sendMany(harness, 6)
  await harness.calm()
  receiver.always("/", 200)
  await pass(70_000, 5000)
  await pass(10_000, 1000)
  await harness.published("delivery.delivered", 6)
})

test("a trip by hand holds the lane, a reset releases it without a ramp", async () => {
  const { harness, receiver, types } = await start()
  const id = await harness.endpoint({ retry: PATIENT })
  await harness.posthorn.endpoints.trip("acme", id)
  await sendMany(harness, 40)
  await harness.calm()
  expect(receiver.to("/")).toHaveLength(0)
  await harness.posthorn.endpoints.reset("acme", id)
  await harness.published("delivery.delivered", 40)
  expect(types()).toEqual(["opened", "closed"])
})

test.each<[string, PolicyInput | "gateway", RegExp]>([
  ["the policy has no breaker", "gateway", /has a policy without a circuit breaker; pause it/],
  [
    "the breaker only reports",
    { ...PATIENT, breaker: "report" },
    /has a circuit breaker that only reports; pause it/,
  ],
])("a trip is refused where %s", async (_where, retry, message) => {
  const { harness } = await start()
  const id = await harness.endpoint({ retry })
  await expect(harness.posthorn.endpoints.trip("acme", id)).rejects.toMatchObject({
    code: "conflict",
    message: expect.stringMatching(message),
  })
})

test("sending all that waits now closes the breaker and skips the ramp", async () => {
  const { harness, receiver, types } = await start()
  await harness.endpoint({ retry: PATIENT })
  receiver.always("/", 500)
  await sendMany(harness, 40)
  await harness.calm()
  receiver.always("/", 200)
  await harness.posthorn.deliveries.sendNow({})
  await harness.published("delivery.delivered", 40)
  expect(types()).toEqual(["opened", "closed"])
})

test("a breaker that only reports holds nothing", async () => {
  const { harness, receiver, types } = await start()
  await harness.endpoint({ retry: { ...PATIENT, breaker: "report" } })
  receiver.always("/", 500)
  await sendMany(harness, 20)
  await harness.published("delivery.attempt", 20)
  await harness.calm()
  expect(types()).toEqual(["opened"])
})

test("an operator's SQL on the protection harms only that endpoint, also after a restart", async () => {
  const { harness, receiver, pass } = await start()
  const typed = [
    "nonsense",
    "[]",
    '{"phase":"open","since":1e300,"step":1e300,"downs":4}',
    '{"spent":1e300,"spentAt":1,"retriesAt":1e300}',
    '{"phase":"ramping","ramp":1e300,"since":-5,"failures":"x","failingSince":1e300}',
  ]
  const retry = { delays: [1], maxAttempts: 3, breaker: { open: 1, maxOpen: 1 } }
  const ids: string[] = []
  for (const i of typed.keys()) ids.push(await harness.endpoint({ retry }, `/typed/${i}`))
  await harness.endpoint({ retry }, "/fine")
  receiver.always("/fine", 404)
  for (const [i, text] of typed.entries())
    await harness.sql(`UPDATE endpoints SET protection = '${text}', breaker_until = 1 WHERE id = '${ids[i]}'`)
  await sendMany(harness, 3)
  await pass(SECOND, SECOND)
  await harness.restart()
  receiver.always("/fine", 200)
  await pass(10 * SECOND, SECOND)
  expect((await harness.rows()).filter(({ webhook_id }) => !ids.includes(String(webhook_id)))).toMatchObject(
    Array.from({ length: 3 }, () => ({ status: "delivered" })),
  )
  expect(await harness.posthorn.endpoints.listHealth()).toHaveProperty("data.length", 6)
})

test.each([
  "breaker_until",
  "disabled_at",
  "paused_at",
])("a time that no clock has is refused in the column %s", async (column) => {
  const { harness } = await start()
  await harness.endpoint()
  for (const value of ["9223372036854775807", "-1"])
    await expect(harness.sql(`UPDATE endpoints SET ${column} = ${value}`)).rejects.toThrow(/constraint/i)
})

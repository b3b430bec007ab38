/** An endpoint that fails for days: told early, warned, disabled, and brought back. */
import { expect, test } from "vitest"
import { DEFAULT_ORG } from "../../src/core/org.ts"
import type { PublicEvent } from "../../src/observe/public-events.ts"
import { virtualTime } from "../support/virtual-time.ts"

const HOUR = 3_600_000
/** A hundred steps of an hour, on a busy machine. */
const PATIENCE = { timeout: 120_000 }
/** An attempt an hour, for ever. */
const HOURLY = { delays: [3600], maxAge: 30 * 86_400, breaker: false } as const

async function start() {
  const { harness, receiver, pass } = await virtualTime()
  const told: PublicEvent[] = []
  for (const name of ["endpoint.failing", "endpoint.recovered", "endpoint.disabled"] as const)
    harness.posthorn.on(name, (event) => void told.push(event))
  const hours = (count: number) => pass(count * HOUR, HOUR)
  return { harness, receiver, told, hours, types: () => told.map(({ type }) => type) }
}

test("it is failing from the first minute, with the default policy", async () => {
  const { harness, receiver, told, types } = await start()
  const id = await harness.endpoint()
  receiver.always("/", 500)
  await harness.send()
  await harness.published("delivery.attempt", 1)
  expect(types()).toEqual([])
  harness.clock.advance(10_000)
  await harness.published("delivery.attempt", 2)
  await harness.calm()
  expect(told).toMatchObject([
    { type: "endpoint.failing", webhook_id: id, failures: 2, last_error: "HTTP 500: answer 500" },
  ])
})

test.each([
  401,
  404,
  "timeout",
  "dns_error",
] as const)("it is failing in the first minute after %s, whose next attempt is minutes away", async (answer) => {
  const { harness, receiver, types } = await start()
  await harness.endpoint()
  receiver.always("/", answer)
  await harness.send()
  await harness.published("delivery.attempt", 1)
  await harness.calm()
  harness.clock.advance(59_000)
  await harness.calm()
  expect(types()).toEqual(["endpoint.failing"])
})

test("a single failure between successes is not told", async () => {
  const { harness, receiver, types } = await start()
  await harness.endpoint({ retry: { delays: [600], maxAttempts: 3 } })
  await harness.send()
  await harness.published("delivery.delivered", 1)
  receiver.always("/", 500)
  await harness.send()
  await harness.published("delivery.attempt", 2)
  await harness.calm()
  expect(types()).toEqual([])
})

test(
  "warned at 24 and 72 hours, disabled after five days; what waits is held and arrives when it is enabled",
  PATIENCE,
  async () => {
    const { harness, receiver, told, hours, types } = await start()
    const id = await harness.endpoint({ retry: HOURLY })
    receiver.always("/", 404)
    await harness.send()
    await harness.published("delivery.attempt", 1)
    const began = harness.clock.now()
    await hours(119)
    expect(types()).toEqual(["endpoint.failing", "endpoint.failing", "endpoint.failing"])
    const since = told.map(({ at }) => (at - began) / HOUR)
    expect(since).toEqual([0, 24, 72])
    expect(told[0]).toMatchObject({ disables_at: began + 120 * HOUR })
    expect(await harness.posthorn.endpoints.get("acme", id)).toMatchObject({ disabled: false })

    await hours(2)
    expect(told.at(-1)).toEqual({
      type: "endpoint.disabled",
      webhook_id: id,
      app_id: expect.stringMatching(/^app_/),
      org_id: DEFAULT_ORG,
      reason: "failing",
      since: began,
      at: began + 120 * HOUR,
    })
    expect(await harness.posthorn.endpoints.get("acme", id)).toMatchObject({
      disabled: true,
      disabledReason: "failing",
      disabledAt: new Date(began + 120 * HOUR),
    })
    const requests = receiver.requests.length
    await hours(24)
    expect(receiver.requests).toHaveLength(requests)
    expect(await harness.rows()).toMatchObject([{ status: "failed" }])

    receiver.always("/", 200)
    await harness.posthorn.endpoints.update("acme", id, { disabled: false })
    await harness.published("delivery.delivered", 1)
    await harness.calm()
    expect(types().at(-1)).toBe("endpoint.recovered")
    expect(await harness.posthorn.endpoints.get("acme", id)).toMatchObject({
      disabledAt: null,
      disabledReason: null,
    })
  },
)

test("an endpoint that is enabled again is not disabled by its next failure", PATIENCE, async () => {
  const { harness, receiver, hours } = await start()
  const id = await harness.endpoint({ retry: HOURLY })
  receiver.always("/", 500)
  await harness.send()
  await harness.published("delivery.attempt", 1)
  await hours(121)
  await harness.posthorn.endpoints.update("acme", id, { disabled: false })
  await hours(2)
  expect(await harness.posthorn.endpoints.get("acme", id)).toMatchObject({ disabled: false })
})

test("a success within the five days starts the count anew", PATIENCE, async () => {
  const { harness, receiver, hours } = await start()
  const id = await harness.endpoint({ retry: HOURLY })
  receiver.always("/", 500)
  await harness.send()
  await harness.published("delivery.attempt", 1)
  await hours(100)
  receiver.always("/", 200)
  await hours(1)
  receiver.always("/", 500)
  await harness.send()
  await harness.calm()
  await hours(100)
  expect(await harness.posthorn.endpoints.get("acme", id)).toMatchObject({ disabled: false })
})

test("a 410 says why and since when the endpoint is disabled, and so does a change by hand", async () => {
  const { harness, receiver, told } = await start()
  const id = await harness.endpoint()
  const other = await harness.endpoint({}, "/other")
  receiver.always("/", 410)
  await harness.send()
  await harness.published("delivery.dead", 1)
  await harness.posthorn.endpoints.update("acme", other, { disabled: true })
  const at = new Date(harness.clock.now())
  expect(await harness.posthorn.endpoints.get("acme", id)).toMatchObject({
    disabledReason: "gone",
    disabledAt: at,
  })
  expect(await harness.posthorn.endpoints.get("acme", other)).toMatchObject({
    disabledReason: "manual",
    disabledAt: at,
  })
  expect(told).toMatchObject([
    { type: "endpoint.disabled", webhook_id: id, reason: "gone", since: at.getTime() },
    { type: "endpoint.disabled", webhook_id: other, reason: "manual", since: null },
  ])
})

test.each([
  ["fail for too long", 500, "failing"],
  ["get a 410", 410, "gone"],
] as const)("requests in flight together that %s disable the endpoint once", async (_what, status, reason) => {
  const { harness, receiver, told } = await start()
  const autoDisable = { after: 43_200, failures: 1 }
  await harness.endpoint({ retry: { ...HOURLY, delays: [43_200], autoDisable } })
  // The lane's concurrency grows with successes.
  receiver.always("/", 200, 1000)
  const pass = async (ms: number) => {
    harness.clock.advance(ms)
    await harness.calm()
  }
  for (let n = 0; n < 10; n++) await harness.send({ n })
  for (let second = 0; second < 10; second++) await pass(1000)
  expect(harness.events.filter(({ type }) => type === "delivery.delivered")).toHaveLength(10)
  receiver.always("/", status, 1000)
  for (let n = 0; n < 3; n++) await harness.send({ n })
  await harness.calm()
  for (const ms of [1000, 12 * HOUR, 1000]) await pass(ms)
  expect(receiver.requests.filter(({ at }) => at === receiver.requests.at(-1)!.at).length).toBeGreaterThan(1)
  expect(told.filter(({ type }) => type === "endpoint.disabled")).toMatchObject([{ reason }])
})

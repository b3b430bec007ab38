/** An endpoint's attempts by the hour, and the status codes of its newest attempts. */
import { expect, test } from "vitest"
import { START, TestClock } from "../support/clock.ts"
import { Harness } from "../support/harness.ts"
import { VirtualReceiver } from "../support/virtual-receiver.ts"

const HOUR = 3_600_000
const UNPROTECTED = { breaker: false, budget: false, adaptive: false, autoDisable: false } as const
/** A retry after two hours. */
const TWICE = { delays: [7200], maxAttempts: 2, jitter: "none", ...UNPROTECTED } as const
const NOTHING = {
  attempts: 0,
  succeeded: 0,
  retries: 0,
  dead: 0,
  noResponse: 0,
  p50Ms: null,
  p95Ms: null,
}

async function start() {
  const clock = new TestClock(START)
  const receiver = new VirtualReceiver(clock)
  const harness = await Harness.start({ clock, transport: receiver })
  const endpoint = await harness.endpoint({ uid: "main", retry: TWICE })
  let attempts = 0
  const send = async (answer: number | "timeout") => {
    receiver.always("/", answer)
    await harness.send()
    await harness.published("delivery.attempt", ++attempts)
    await harness.calm()
  }
  const retryAll = async () => {
    clock.advance(2 * HOUR)
    await harness.poll()
    await harness.quiet()
  }
  const series = (span = {}) => harness.posthorn.endpoints.series("acme", endpoint, span)
  return { harness, clock, send, retryAll, series }
}

test("each hour of the last day has its attempts, retries, dead letters and latency, also an hour without any", async () => {
  const { clock, send, retryAll, series } = await start()
  await send(200)
  await send(503)
  await send("timeout")
  clock.advance(10 * 60_000)
  await retryAll()
  const { hours, statusCodes, sampled } = await series()
  expect(hours).toHaveLength(24)
  expect(hours[23]!.hour).toEqual(new Date(START + 2 * HOUR))
  expect(hours.slice(20)).toMatchObject([
    NOTHING,
    { attempts: 3, succeeded: 1, retries: 0, dead: 0, noResponse: 1, p50Ms: 25, p95Ms: 47 },
    NOTHING,
    { attempts: 2, succeeded: 0, retries: 2, dead: 2, noResponse: 2 },
  ])
  expect(statusCodes).toEqual([
    { status: 0, count: 3 },
    { status: 200, count: 1 },
    { status: 503, count: 1 },
  ])
  expect(sampled).toBe(5)
})

test("a span is widened to whole hours, and is at most the 90 days for which sums are kept", async () => {
  const { clock, send, series } = await start()
  await send(200)
  clock.advance(HOUR)
  await send(404)
  const first = await series({ since: START + 1, until: START + 2 })
  expect(first.hours).toMatchObject([{ hour: new Date(START), attempts: 1, succeeded: 1 }])
  expect(first.statusCodes).toEqual([{ status: 200, count: 1 }])
  const { hours, sampled } = await series({ since: 0 })
  expect([hours.length, sampled]).toEqual([90 * 24, 2])
  expect(await series({ since: START - 5 * HOUR, until: START })).toMatchObject({
    statusCodes: [],
    sampled: 0,
  })
  await expect(series({ since: START, until: START })).rejects.toThrow("since must be before until")
})

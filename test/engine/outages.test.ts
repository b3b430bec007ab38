/** Receivers that are neither up nor down: the breaker's states, and how many requests reach the receiver in 30 minutes. */
import { expect, test } from "vitest"
import type { BreakerStatus } from "../../src/resources/endpoints.ts"
import type { VirtualAnswer } from "../support/virtual-receiver.ts"
import { virtualTime } from "../support/virtual-time.ts"

const SECONDS = 30 * 60
const STEP_SECONDS = 10
const STEPS = SECONDS / STEP_SECONDS
const CONCURRENCY = 4

/**
 * Open for 30, 60, 120, 240, 480 and then 600 s, each at least 0.8 of that, as long as no time between is healthy: the first five take
 * 744 s, the next two 480 s each, and the eighth lasts longer than the 30 minutes.
 */
const MOST_OPENINGS = 8

interface Outage {
  readonly path: string
  /** Messages in each step of 10 s. */
  readonly perStep: 2 | 10
  readonly answer: (passedMs: number, index: number) => VirtualAnswer
  /** At most. */
  readonly requests: number
  /** At most: requests that got another response than 200. */
  readonly failures: number
  readonly inFlight: number
  readonly openings: readonly [least: number, most: number]
  readonly states: readonly BreakerStatus["state"][]
}

const OUTAGES: readonly Outage[] = [
  {
    // A down phase has ten messages, so the breaker opens in each: after five failures in a row, and those in flight then. The up phase is
    // shorter than a healthy interval.
    path: "/10-s-up-10-s-down",
    perStep: 10,
    answer: (passedMs) => ({ answer: passedMs % 20_000 < 10_000 ? 200 : 500 }),
    requests: 10 * STEPS + (4 + CONCURRENCY) * MOST_OPENINGS,
    failures: (4 + CONCURRENCY) * MOST_OPENINGS,
    inFlight: CONCURRENCY,
    openings: [2, MOST_OPENINGS],
    states: ["open", "half_open", "ramping"],
  },
  {
    // A slow success is a success: only the endpoint's concurrency limits the requests.
    path: "/200-after-29-s",
    perStep: 2,
    answer: () => ({ answer: 200, afterMs: 29_000 }),
    requests: CONCURRENCY * Math.ceil(SECONDS / 29),
    failures: 0,
    inFlight: CONCURRENCY,
    openings: [0, 0],
    states: ["closed"],
  },
  {
    // Concurrency is one until a success: five timeouts open the breaker, then each opening ends with one probe.
    path: "/timeout-after-30-s",
    perStep: 2,
    answer: () => ({ answer: "timeout", afterMs: 30_000 }),
    requests: 5 + MOST_OPENINGS,
    failures: 5 + MOST_OPENINGS,
    inFlight: 1,
    openings: [2, MOST_OPENINGS],
    states: ["open", "half_open"],
  },
  {
    // No failures in a row. The first failure from the 20th attempt on opens the breaker, and the ramp sends 20 in 3 s, too soon for a healthy
    // interval: each opening has a probe, at most 21 attempts, and those in flight then.
    path: "/half-of-the-responses-500",
    perStep: 10,
    answer: (_passedMs, index) => ({ answer: index % 2 === 0 ? 200 : 500 }),
    requests: (22 + CONCURRENCY) * MOST_OPENINGS,
    failures: (11 + CONCURRENCY) * MOST_OPENINGS,
    inFlight: CONCURRENCY,
    openings: [2, MOST_OPENINGS],
    states: ["open", "half_open", "ramping"],
  },
  {
    // A 429 does not open the breaker. The delays of `standard`, doubled by `adaptive`, are 10 s, 10 minutes and an hour, ±20 %: a second attempt
    // comes 8 s after the first or later, the third 8 minutes after that, and no fourth within the 30 minutes.
    path: "/429",
    perStep: 2,
    answer: () => ({ answer: 429 }),
    requests: (2 * (SECONDS + (SECONDS - 8) + (SECONDS - 488))) / STEP_SECONDS,
    failures: 3 * 2 * STEPS,
    inFlight: 1,
    openings: [0, 0],
    states: ["closed"],
  },
  {
    // The header holds the endpoint, and concurrency is one until a success: one request a minute.
    path: "/429-with-retry-after-60",
    perStep: 2,
    answer: () => ({ answer: 429, retryAfter: "60" }),
    requests: 31,
    failures: 31,
    inFlight: 1,
    openings: [0, 0],
    states: ["closed"],
  },
]

test("receivers that are neither up nor down get few requests", { timeout: 180_000 }, async () => {
  const { harness, receiver, clock } = await virtualTime({ random: seeded() })
  const startedAt = clock.now()
  const opened: string[] = []
  harness.posthorn.on("endpoint.breaker.opened", ({ webhook_id: id }) => void opened.push(id))
  // All in one run, which takes a sixth of the time.
  const endpoints: { readonly outage: Outage; readonly id: string; answers: VirtualAnswer["answer"][] }[] = []
  for (const outage of OUTAGES) {
    const { path, perStep } = outage
    const eventTypes = perStep === 10 ? ["each", "burst"] : ["each"]
    const answers: VirtualAnswer["answer"][] = []
    const id = await harness.endpoint({ eventTypes, concurrency: CONCURRENCY }, path)
    endpoints.push({ outage, id, answers })
    receiver.by(path, ({ at }) => {
      const given = outage.answer(at - startedAt, answers.length)
      answers.push(given.answer)
      return given
    })
  }
  const messages = Array.from({ length: 10 }, (_, n) => ({
    eventType: n < 2 ? "each" : "burst",
    payload: {},
  }))
  for (let step = 0; step < STEPS; step++) {
    await harness.posthorn.sendBatch("acme", messages)
    await harness.calm()
    clock.advance(STEP_SECONDS * 1000)
    await harness.calm()
  }

  for (const { outage, id, answers } of endpoints) {
    const { path, requests, failures, inFlight, openings, states } = outage
    const { breaker } = await harness.posthorn.endpoints.get("acme", id)
    const times = opened.filter((one) => one === id).length
    expect.soft(answers.length, path).toBeLessThanOrEqual(requests)
    expect.soft(answers.filter((one) => one !== 200).length, path).toBeLessThanOrEqual(failures)
    expect.soft(receiver.mostInFlight.get(path), path).toBeLessThanOrEqual(inFlight)
    expect.soft(times, path).toBeGreaterThanOrEqual(openings[0])
    expect.soft(times, path).toBeLessThanOrEqual(openings[1])
    expect.soft(states, path).toContain(breaker.state)
    receiver.always(path, 200)
  }
  clock.advance(30_000)
  await harness.calm()
  await harness.posthorn.deliveries.sendNow({})
  const sent = OUTAGES.reduce((sum, { perStep }) => sum + perStep * STEPS, 0)
  await harness.published("delivery.delivered", sent)
})

/** The same numbers in each run: probes meet different phases of a receiver. */
function seeded(): () => number {
  let state = 1
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}

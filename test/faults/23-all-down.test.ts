/** Fault 23: all endpoints are down for two hours, then back. Retries come on schedule, and the backlog goes out at 1.5 times the steady load. */
import { expect, test } from "vitest"
import { TestClock } from "../support/clock.ts"
import { Harness } from "../support/harness.ts"
import { VirtualReceiver } from "../support/virtual-receiver.ts"

const OUTAGE_SECONDS = 2 * 3600
const PER_SECOND = 8
const MOST_PER_SECOND = 1.5 * PER_SECOND
const BACKLOG_EACH_MINUTE = 5
const DELAYS = [30, 600, 3600, 7200]
const STEP_SECONDS = 30
const PROTECTED = ["/one", "/two", "/three"]
/** No breaker: each attempt shows the schedule alone. */
const EXACT = "/exact"

test("all endpoints are down for hours, then back", { timeout: 300_000 }, async () => {
  const clock = new TestClock()
  const receiver = new VirtualReceiver(clock)
  const harness = await Harness.start({ clock, transport: receiver })
  const paths = [...PROTECTED, EXACT]
  const policy = { delays: DELAYS, maxAttempts: 10 }
  // With a short interval the test has less to do until the last receiver is probed.
  const breaker = { maxOpen: 120 }
  for (const path of PROTECTED)
    await harness.endpoint({ uid: path.slice(1), eventTypes: ["load"], retry: { ...policy, breaker } }, path)
  await harness.endpoint({ eventTypes: ["single"], retry: { ...policy, breaker: false } }, EXACT)
  let sent = 0
  const send = async (count: number) => {
    sent += count
    const messages = Array.from({ length: count }, () => ({ eventType: "load", payload: {} }))
    await harness.posthorn.sendBatch("acme", messages)
    await harness.calm()
  }
  const pass = async (seconds: number) => {
    clock.advance(seconds * 1000)
    await harness.calm()
  }
  const passUnderLoad = async (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      await send(PER_SECOND)
      await pass(1)
    }
  }

  await passUnderLoad(300)
  for (const path of paths) receiver.always(path, "connection_refused")
  const downAt = clock.now()
  await harness.posthorn.send("acme", { eventType: "single", payload: {} })
  for (let second = 0; second < OUTAGE_SECONDS; second += STEP_SECONDS) {
    if (second % 60 === 0) await send(BACKLOG_EACH_MINUTE)
    await pass(STEP_SECONDS)
  }

  for (const path of paths) receiver.always(path, 200)
  const before = new Map(paths.map((path) => [path, receiver.to(path).length]))
  /** The number of requests when the ramp ended. */
  const ended = new Map<string, number>()
  for (let second = 0; second < 900 && ended.size < PROTECTED.length; second++) {
    await passUnderLoad(1)
    for (const path of PROTECTED) {
      const { breaker } = await harness.posthorn.endpoints.get("acme", path.slice(1))
      if (breaker.state === "closed" && !ended.has(path)) ended.set(path, receiver.to(path).length)
    }
  }
  for (const path of PROTECTED) {
    // The first one is the probe.
    const [, ...ramped] = receiver
      .to(path)
      .slice(before.get(path), ended.get(path))
      .map(({ at }) => at)
    expect(ramped.length, path).toBeGreaterThan((OUTAGE_SECONDS / 60) * BACKLOG_EACH_MINUTE)
    const spansMs = ramped.slice(MOST_PER_SECOND).map((at, i) => at - ramped[i]!)
    expect(Math.min(...spansMs), path).toBeGreaterThanOrEqual(1000)
  }
  await passUnderLoad(1)
  for (const path of PROTECTED) expect(receiver.to(path).at(-1)!.at, path).toBe(clock.now() - 1000)

  await pass(11_430 - (clock.now() - downAt) / 1000)
  while (clock.now() < downAt + 3 * OUTAGE_SECONDS * 1000) await pass(10 * STEP_SECONDS)
  await harness.published("delivery.delivered", PROTECTED.length * sent + 1)
  const attemptsAfter = receiver.to(EXACT).map(({ at }) => (at - downAt) / 1000)
  expect(attemptsAfter).toEqual([0, 30, 630, 4230, 11_430])
  for (const path of PROTECTED)
    for (const requests of Map.groupBy(receiver.to(path), ({ messageId }) => messageId).values())
      for (const [i, { at }] of requests.slice(1).entries())
        expect((at - requests[i]!.at) / 1000, path).toBeGreaterThanOrEqual(DELAYS[i]!)
})

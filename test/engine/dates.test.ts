/** Dates that somebody gave are times of the wall clock, delays run on the steady one, whatever becomes of the machine's time. */
import { expect, onTestFinished, test } from "vitest"
import { openPosthorn } from "../../src/posthorn.ts"
import { START, TestClock } from "../support/clock.ts"
import { Harness, LOOPBACK } from "../support/harness.ts"

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** Time passes in steps, as a poll would see it: after each, what came due is sent. */
async function pass(harness: Harness, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= MINUTE) {
    harness.clock.advance(Math.min(left, MINUTE))
    await harness.poll()
    await harness.quiet()
  }
}

const inMs = (harness: Harness, ms: number) => ({ deliverAt: new Date(harness.clock.wallNow() + ms) })

const ordered = [false, true]

test.each(
  ordered,
)("after the clock was set back an hour, a message due in ten minutes waits ten minutes (ordered: %s)", async (ordered) => {
  const harness = await Harness.start()
  await harness.endpoint({ ordered })
  harness.clock.jumpWall(-HOUR)
  await harness.send({}, inMs(harness, 10 * MINUTE))
  await pass(harness, 10 * MINUTE - 1)
  expect(harness.receiver.requests).toHaveLength(0)
  await pass(harness, 1)
  expect(harness.receiver.requests).toHaveLength(1)
})

test.each(
  ordered,
)("after it was set forward an hour, a message due in two seconds waits two seconds (ordered: %s)", async (ordered) => {
  const harness = await Harness.start()
  await harness.endpoint({ ordered })
  harness.clock.jumpWall(HOUR)
  await harness.send({}, inMs(harness, 2000))
  await pass(harness, 1999)
  expect(harness.receiver.requests).toHaveLength(0)
  harness.clock.advance(1)
  await harness.published("delivery.delivered", 1)
})

test.each(
  ordered,
)("a message that waits for a date goes when the wall clock says so: set back, later (ordered: %s)", async (ordered) => {
  const harness = await Harness.start()
  await harness.endpoint({ ordered })
  await harness.send({}, inMs(harness, 10 * MINUTE))
  harness.clock.jumpWall(-HOUR)
  await pass(harness, 70 * MINUTE - 1)
  expect(harness.receiver.requests).toHaveLength(0)
  await pass(harness, 1)
  expect(harness.receiver.requests).toHaveLength(1)
})

test.each(
  ordered,
)("a message that waits for a date goes when the wall clock says so: set forward, at once (ordered: %s)", async (ordered) => {
  const harness = await Harness.start()
  await harness.endpoint({ ordered })
  await harness.poll()
  await harness.send({}, inMs(harness, HOUR))
  harness.clock.jumpWall(HOUR)
  await harness.poll()
  await harness.published("delivery.delivered", 1)
})

test.each([
  ["resend", false],
  ["resend", true],
  ["replayMissing", false],
  ["replayMissing", true],
] as const)("after the clock was set back an hour, a message due in ten minutes that %s adds to an endpoint waits ten minutes (ordered: %s)", async (how, ordered) => {
  const harness = await Harness.start()
  const { replays } = harness.posthorn
  await harness.endpoint({ eventTypes: ["something.else"] })
  harness.clock.jumpWall(-HOUR)
  const message = await harness.send({}, inMs(harness, 10 * MINUTE))
  const endpointId = await harness.endpoint({ ordered })
  if (how === "resend") await replays.resend("acme", message, endpointId)
  else await replays.replayMissing("acme", endpointId, { since: new Date(0) })
  await expect.poll(() => harness.rows()).toHaveLength(1)
  await pass(harness, 10 * MINUTE - 1)
  expect(harness.receiver.requests).toHaveLength(0)
  await pass(harness, 1)
  expect(harness.receiver.requests).toHaveLength(1)
})

test.each([
  [HOUR, false],
  [HOUR, true],
  [-HOUR, false],
  [-HOUR, true],
])("a delay passes on the steady clock: a jump of %i ms neither ends nor prolongs it (ordered: %s)", async (jump, ordered) => {
  const harness = await Harness.start()
  await harness.endpoint({ ordered })
  await harness.send({}, { delaySeconds: 600 })
  harness.clock.jumpWall(jump)
  // The steady clock gives way to the wall by at most 5 %.
  await pass(harness, 9.4 * MINUTE)
  expect(harness.receiver.requests).toHaveLength(0)
  await pass(harness, 1.3 * MINUTE)
  expect(harness.receiver.requests).toHaveLength(1)
})

test.each([
  HOUR,
  -HOUR,
])("a date in Retry-After is one of the wall clock, after a jump of %i ms too", async (jump) => {
  const harness = await Harness.start()
  await harness.endpoint({ retry: { delays: [1], maxAttempts: 3, retryAfter: 86_400 } })
  harness.clock.jumpWall(jump)
  const until = new Date(harness.clock.wallNow() + 120_000).toUTCString()
  harness.receiver.queue("/", (_, response) => response.writeHead(503, { "retry-after": until }).end())
  await harness.send()
  await harness.published("delivery.attempt", 1)
  await pass(harness, 110_000)
  expect(harness.receiver.requests).toHaveLength(1)
  await pass(harness, 20_000)
  expect(harness.receiver.requests).toHaveLength(2)
})

test.each([
  [HOUR, 0],
  [HOUR, 1],
  [-HOUR, 0],
  [-HOUR, 1],
])("a date in a reschedule is measured by the wall clock as it is given: after a jump of %i ms, and %i attempts", async (jump, tried) => {
  const harness = await Harness.start()
  await harness.endpoint({ retry: { delays: [7200], maxAttempts: 3 } })
  harness.receiver.queue("/", 500)
  harness.clock.jumpWall(jump)
  const message = await harness.send({}, tried === 0 ? inMs(harness, 2 * HOUR) : {})
  if (tried === 1) await harness.published("delivery.attempt", 1)
  const { deliveries } = harness.posthorn
  const { id } = (await deliveries.list({ message })).data[0]!
  await deliveries.reschedule(id, { at: new Date(harness.clock.wallNow() + 10 * MINUTE) })
  // It is a delay from then on, which gives way to the wall clock by at most 5 %.
  await pass(harness, 9.4 * MINUTE)
  expect(harness.receiver.requests).toHaveLength(tried)
  await pass(harness, 1.3 * MINUTE)
  expect(harness.receiver.requests).toHaveLength(tried + 1)
})

test("a message that waits for a date is rescheduled within its age, after any jump", async () => {
  const harness = await Harness.start()
  await harness.endpoint({ retry: { delays: [60], maxAge: 600, breaker: false } })
  harness.clock.jumpWall(-HOUR)
  const message = await harness.send({}, inMs(harness, 10 * MINUTE))
  const { deliveries } = harness.posthorn
  const { id } = (await deliveries.list({ message })).data[0]!
  await deliveries.reschedule(id, { delaySeconds: 60 })
  await pass(harness, 2 * MINUTE)
  expect(await deliveries.get(id)).toMatchObject({ status: "delivered", attemptCount: 1 })
})

test("a date that was waited for gives no more age than the policy has, after any jump", async () => {
  const harness = await Harness.start()
  await harness.endpoint({ retry: { delays: [60], maxAge: 600, breaker: false } })
  harness.receiver.always("/", 500)
  harness.clock.jumpWall(-HOUR)
  await harness.send({}, inMs(harness, 10 * MINUTE))
  await pass(harness, 10 * MINUTE)
  await harness.published("delivery.attempt", 1)
  await pass(harness, 9 * MINUTE)
  expect((await harness.rows())[0]).toMatchObject({ status: "failed" })
  await pass(harness, 2 * MINUTE)
  expect((await harness.rows())[0]).toMatchObject({ status: "dead", dead_reason: "expired" })
})

test("clock set back, then a restart: what was accepted, replayed or came due before and was never tried goes at once", async () => {
  const harness = await Harness.start()
  const endpointId = await harness.endpoint({ retry: { delays: [60], maxAttempts: 1 } })
  harness.receiver.queue("/", 500)
  const dead = await harness.send({ n: "dead" })
  await harness.published("delivery.dead", 1)
  await harness.posthorn.endpoints.pause("acme", endpointId)
  await harness.posthorn.dead.retry((await harness.posthorn.dead.list({ message: dead })).data[0]!.id)
  for (let n = 0; n < 3; n++) await harness.send({ n })
  await harness.close()

  const clock = new TestClock(START - HOUR)
  const posthorn = await openPosthorn(
    { ...harness.ground.options, logger: "silent", egress: LOOPBACK, closeTimeoutMs: 0 },
    { clock },
  )
  onTestFinished(() => posthorn.close())
  await posthorn.endpoints.resume("acme", endpointId)
  expect(await harness.receiver.arrived("/", 5)).toHaveLength(5)
})

/** Fault 25: a payload that makes our own code throw is set aside with a reason; everything else flows. */
import { expect, test } from "vitest"
import { MOST_STALLS } from "../../src/core/settle.ts"
import { HttpTransport } from "../../src/transport/http.ts"
import type { OutboundRequest, Transport } from "../../src/transport/transport.ts"
import { TestClock } from "../support/clock.ts"
import { Harness, loopbackGuard } from "../support/harness.ts"

/** The real transport, but for one payload on which it throws as a bug of ours would. */
class PoisonedTransport extends HttpTransport implements Transport {
  override send(request: OutboundRequest) {
    if (Buffer.from(request.body).includes("poison"))
      throw new TypeError("cannot read properties of undefined")
    return super.send(request)
  }
}

/** It fails at once, and then after each of its waits. */
async function giveUp(harness: Harness): Promise<void> {
  for (let failure = 1; failure < MOST_STALLS; failure++) {
    await harness.quiet()
    harness.clock.advance(60_000)
    await harness.poll()
  }
}

test("a delivery that crashes its worker is tried a few times, then dead with the reason error, and no try is an attempt", async () => {
  const clock = new TestClock()
  const harness = await Harness.start({
    clock,
    transport: new PoisonedTransport(clock, loopbackGuard(clock)),
  })
  await harness.endpoint()
  await harness.send("poison")
  for (let i = 0; i < 10; i++) await harness.send({ i })
  await harness.published("delivery.delivered", 10)
  await giveUp(harness)
  const [dead] = await harness.published("delivery.dead", 1)
  expect(dead).toMatchObject({
    reason: "error",
    attempt_count: 0,
    last_error: "cannot read properties of undefined",
  })
  expect((await harness.rows())[0]).toMatchObject({ status: "dead", dead_reason: "error", attempt_count: 0 })
  await harness.send({ after: true })
  await harness.published("delivery.delivered", 11)
})

test("an ordered line goes on behind it", async () => {
  const clock = new TestClock()
  const harness = await Harness.start({
    clock,
    transport: new PoisonedTransport(clock, loopbackGuard(clock)),
  })
  await harness.endpoint({ ordered: true })
  await harness.send("poison")
  await harness.send({ next: true })
  await giveUp(harness)
  await harness.published("delivery.dead", 1)
  await harness.published("delivery.delivered", 1)
})

test("a delivery that was in flight at five crashes is set aside; a delivery that was there by chance waits a while", async () => {
  const harness = await Harness.start({ open: false })
  await harness.open()
  const id = await harness.endpoint()
  await harness.posthorn.endpoints.pause("acme", id)
  await harness.send({ killer: true })
  await harness.send({ bystander: true })
  await harness.close()
  // The state that the crashes would have left in the file: the claim of a worker that is gone.
  await harness.sql("UPDATE webhook_deliveries SET stalls = CASE seq WHEN 1 THEN 4 ELSE 1 END")
  await harness.sql("INSERT INTO in_flight SELECT seq, 1, received_at FROM webhook_deliveries")
  await harness.open()
  await harness.posthorn.endpoints.resume("acme", id)
  const [dead] = await harness.published("delivery.dead", 1)
  expect(dead!.reason).toBe("error")
  harness.clock.advance(999)
  await harness.poll()
  expect(harness.receiver.requests).toEqual([])
  harness.clock.advance(1)
  await harness.published("delivery.delivered", 1)
  expect(await harness.sql("SELECT status FROM attempts ORDER BY seq")).toEqual([
    { status: "unknown" },
    { status: "unknown" },
    { status: "succeeded" },
  ])
})

test("an endpoint whose secrets cannot be read fails alone", async () => {
  const harness = await Harness.start()
  const id = await harness.endpoint({}, "/broken")
  await harness.endpoint({}, "/fine")
  await harness.sql("UPDATE endpoints SET secrets = x'00', version = version + 1 WHERE id = ?", id)
  await harness.send()
  await harness.published("delivery.delivered", 1)
  await giveUp(harness)
  const [dead] = await harness.published("delivery.dead", 1)
  expect(dead).toMatchObject({ webhook_id: id, reason: "error" })
})

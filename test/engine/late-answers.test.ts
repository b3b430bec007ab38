/** An answer that comes after its delivery was called off is an attempt like any other: logged, counted and published. */
import { expect, test } from "vitest"
import { Harness } from "../support/harness.ts"

interface Under {
  readonly harness: Harness
  readonly deliveryId: string
  readonly endpointId: string
  readonly answer: (status: number) => void
}

/** A request that the receiver has not answered. `warm`: the lane is open, so that the store hands the delivery over. */
async function underWay(warm: boolean): Promise<Under> {
  const harness = await Harness.start()
  const endpointId = await harness.endpoint()
  if (warm) {
    await harness.send()
    await harness.published("delivery.delivered", 1)
  }
  const before = harness.receiver.requests.length
  const answer = harness.receiver.hold("/")
  const message = await harness.send()
  await harness.receiver.arrived("/", before + 1)
  const [delivery] = (await harness.posthorn.deliveries.list({ message })).data
  return { harness, deliveryId: delivery!.id, endpointId, answer }
}

test.each([
  ["a cancel", 200, false],
  ["a cancel", 500, true],
  ["the end of its endpoint", 200, true],
  ["the end of its endpoint", 500, false],
] as const)("an answer after %s (HTTP %i, open lane: %s) is published and counted", async (what, status, warm) => {
  const { harness, deliveryId, endpointId, answer } = await underWay(warm)
  const { deliveries, endpoints } = harness.posthorn
  if (what === "a cancel") await deliveries.cancel(deliveryId)
  else await endpoints.delete("acme", endpointId)
  await harness.published("delivery.dead", 1)
  answer(status)
  const attempt = (await harness.published("delivery.attempt", warm ? 2 : 1)).at(-1)
  expect(attempt).toMatchObject({
    webhook_delivery_id: deliveryId,
    success: status === 200,
    response_status: status,
    attempt_count: 1,
    next_retry_at: null,
  })
  await harness.quiet()
  expect(await deliveries.get(deliveryId)).toMatchObject({
    status: "dead",
    deadReason: "cancelled",
    attemptCount: 1,
  })
  expect(harness.events.filter(({ type }) => type === "delivery.delivered")).toHaveLength(warm ? 1 : 0)
  expect(harness.events.filter(({ type }) => type === "delivery.dead")).toHaveLength(1)
})

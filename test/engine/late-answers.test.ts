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

test.each([
  200, 500,
])("an answer from before an operator's retry (HTTP %i) is published, and the retry has all its attempts", async (status) => {
  const harness = await Harness.start()
  await harness.endpoint({ retry: { delays: [60], maxAttempts: 2 } })
  harness.receiver.queue("/", 500)
  const message = await harness.send()
  await harness.published("delivery.attempt", 1)
  const answer = harness.receiver.hold("/")
  harness.clock.advance(60_000)
  await harness.receiver.arrived("/", 2)
  const { deliveries, attempts } = harness.posthorn
  const { id } = (await deliveries.list({ message })).data[0]!
  await deliveries.retry(id)
  answer(status)
  harness.receiver.always("/", 500)
  expect((await harness.published("delivery.attempt", 3)).slice(1)).toMatchObject([
    { response_status: status, attempt_count: 2, next_retry_at: null },
    { response_status: 500, attempt_count: 1, next_retry_at: expect.any(Number) },
  ])
  harness.clock.advance(60_000)
  expect(await harness.published("delivery.dead", 1)).toMatchObject([{ attempt_count: 2 }])
  expect(await deliveries.get(id)).toMatchObject({ status: "dead", deadReason: "exhausted", attemptCount: 2 })
  expect((await attempts.list({ message })).data).toHaveLength(4)
})

test.each([
  ["a cancel and a retry", 200, false],
  ["a cancel and a retry", 500, true],
  ["a cancel and a retry", 200, true],
  ["a retry", 500, false],
  ["a retry", 200, true],
] as const)("an answer to the first attempt after %s (HTTP %i, open lane: %s) does not count for the retry", async (what, status, warm) => {
  const { harness, deliveryId, answer } = await underWay(warm)
  const { deliveries, attempts } = harness.posthorn
  harness.clock.advance(1000)
  if (what === "a cancel and a retry") await deliveries.cancel(deliveryId)
  await deliveries.retry(deliveryId)
  answer(status)
  harness.receiver.always("/", 200)
  const published = (await harness.published("delivery.attempt", warm ? 3 : 2)).slice(-2)
  expect(published).toMatchObject([
    { webhook_delivery_id: deliveryId, response_status: status, attempt_count: 1, next_retry_at: null },
    { webhook_delivery_id: deliveryId, response_status: 200, attempt_count: 1 },
  ])
  await harness.quiet()
  expect(await deliveries.get(deliveryId)).toMatchObject({ status: "delivered", attemptCount: 1 })
  expect((await attempts.list({ delivery: deliveryId })).data).toMatchObject([
    { status: "succeeded", manual: true },
    { status: status === 200 ? "succeeded" : "failed", manual: false },
  ])
})

/** Seed 000, UC-0268: what counts as a failure, and the reason that error_detail holds. */
import { expect, test } from "vitest"
import { Harness } from "../support/harness.ts"
import { Receiver } from "../support/receiver.ts"

test("any response but a 2xx is a failure and is retried", async () => {
  const harness = await Harness.start()
  const statuses = [301, 400, 404, 410, 429, 500]
  for (const status of statuses) {
    harness.receiver.queue(`/${status}`, status)
    await harness.endpoint({ retry: "gateway" }, `/${status}`)
  }
  await harness.send()
  await harness.published("delivery.attempt", 6)
  const details = await harness.sql(
    "SELECT status, error_detail FROM webhook_deliveries ORDER BY error_detail",
  )
  expect(details).toEqual(
    statuses.map((status) => ({ status: "failed", error_detail: `HTTP ${status}: answer ${status}` })),
  )
  harness.clock.advance(30_000)
  await harness.published("delivery.delivered", 6)
})

test("a network error is a failure, and error_detail holds its reason", async () => {
  const harness = await Harness.start()
  const gone = await Receiver.start()
  const nobody = gone.url()
  await gone.close()
  await harness.endpoint({ retry: "gateway", url: nobody })
  await harness.endpoint({ retry: "gateway" }, "/reset")
  harness.receiver.queue("/reset", (_request, response) => response.destroy())
  await harness.send()
  await harness.published("delivery.attempt", 2)
  const failure = { status: "failed", attempt_count: 1, next_retry_at: harness.clock.now() + 30_000 }
  expect(await harness.sql("SELECT * FROM webhook_deliveries ORDER BY error_detail")).toMatchObject([
    { ...failure, error_detail: "connection_refused" },
    { ...failure, error_detail: "connection_reset" },
  ])
})

test("a receiver that does not answer within 30 seconds is a failure", async () => {
  const harness = await Harness.start()
  harness.receiver.hold("/")
  await harness.endpoint({ retry: "gateway" })
  await harness.send()
  await harness.receiver.arrived("/", 1)
  harness.clock.advance(30_000)
  await harness.published("delivery.attempt", 1)
  expect((await harness.rows())[0]).toMatchObject({
    status: "failed",
    attempt_count: 1,
    error_detail: "timeout",
  })
})

import { expect, test } from "vitest"
import { Harness } from "../support/harness.ts"

test("lanes say what waits, why and since when", async () => {
  const harness = await Harness.start()
  const { endpoints, lanes } = harness.posthorn
  const paused = await harness.endpoint({ uid: "paused" }, "/paused")
  const failing = await harness.endpoint(
    { uid: "failing", retry: { delays: [60], maxAttempts: 3 } },
    "/failing",
  )
  const slow = await harness.endpoint({ uid: "slow" }, "/slow")
  await harness.endpoint({ uid: "idle" }, "/idle")
  await endpoints.pause("acme", "paused")
  harness.receiver.always("/failing", 500)
  const answer = harness.receiver.hold("/slow")
  const since = harness.clock.now()
  await harness.send()
  await harness.published("delivery.attempt", 2)
  await harness.receiver.arrived("/slow", 1)
  await harness.calm()
  const { data } = await lanes.list({ app: "acme" })
  const shown = new Map(data.map((lane) => [lane.endpointId, lane]))
  expect(shown.size).toBe(3)
  expect(shown.get(paused)).toMatchObject({ reason: "paused", waiting: 1, retrying: 0, sending: 0 })
  expect(shown.get(paused)!.oldestAt.getTime()).toBe(since)
  expect(shown.get(failing)).toMatchObject({ reason: "retry", waiting: 0, retrying: 1 })
  expect(shown.get(failing)!.nextDueAt!.getTime()).toBe(since + 60_000)
  expect(shown.get(slow)).toMatchObject({ reason: "sending", sending: 1 })
  expect((await lanes.list({ limit: 2 })).done).toBe(false)
  answer(200)
  await harness.published("delivery.delivered", 2)
})

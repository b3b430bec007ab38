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
  expect((await lanes.list({ endpoint: failing })).data).toEqual([shown.get(failing)])
  expect((await lanes.list({ app: "acme", endpoint: "idle" })).data).toEqual([])
  await expect(lanes.list({ endpoint: "failing" })).rejects.toThrow("must be an endpoint's id")
  answer(200)
  await harness.published("delivery.delivered", 2)
})

const MINUTE = 60_000

/** A delivery's next attempt, as each of the APIs shows it. */
async function everywhere(harness: Harness, message: string) {
  const { deliveries, lanes } = harness.posthorn
  const [listed] = (await deliveries.list({ message })).data
  const got = await deliveries.get(listed!.id)
  expect(got).toEqual(listed)
  const lane = (await lanes.list()).data.find(({ endpointId }) => endpointId === got.endpointId)!
  return { at: got.nextRetryAt?.getTime() ?? null, why: got.waitReason, lane }
}

test("SENDING counts the requests in flight, not what was fetched ahead", async () => {
  const harness = await Harness.start()
  await harness.endpoint({ concurrency: 3 })
  for (let n = 0; n < 6; n++) {
    await harness.send()
    await harness.published("delivery.delivered", n + 1)
  }
  const before = harness.receiver.requests.length
  const answer = harness.receiver.hold("/")
  const ids = await Promise.all(Array.from({ length: 30 }, () => harness.send()))
  await harness.receiver.arrived("/", before + 1)
  await harness.calm()
  const { data } = await harness.posthorn.lanes.list()
  const inFlight = harness.receiver.requests.length - before
  expect(inFlight).toBeLessThanOrEqual(3)
  expect(data).toMatchObject([{ reason: "sending", sending: inFlight, waiting: 30 }])
  const reasons = await Promise.all(ids.map(async (id) => (await everywhere(harness, id)).why))
  expect(reasons.filter((why) => why === "sending")).toHaveLength(inFlight)
  expect(reasons.filter((why) => why === "due")).toHaveLength(30 - inFlight)
  answer(200)
  await harness.published("delivery.delivered", 36)
})

test.each([
  ["a date", (harness: Harness) => ({ deliverAt: new Date(harness.clock.wallNow() + MINUTE) })],
  ["a delay", () => ({ delaySeconds: 60 })],
] as const)("a message with %s is scheduled, not retried", async (_, when) => {
  const harness = await Harness.start()
  await harness.endpoint()
  const at = harness.clock.now() + MINUTE
  const shown = await everywhere(harness, await harness.send({}, when(harness)))
  expect(shown).toMatchObject({
    at,
    why: "scheduled",
    lane: { reason: "scheduled", nextDueAt: new Date(at) },
  })
})

test("behind a Retry-After, nothing says that it starts before", async () => {
  const harness = await Harness.start()
  await harness.endpoint({ retry: { delays: [10], maxAttempts: 5, retryAfter: 86_400 } })
  harness.receiver.queue("/", (_, response) => response.writeHead(429, { "retry-after": "600" }).end())
  const first = await harness.send()
  await harness.published("delivery.attempt", 1)
  const at = harness.clock.now() + 10 * MINUTE
  harness.clock.advance(MINUTE)
  const second = await harness.send()
  for (const message of [first, second]) {
    const { at: shown, why, lane } = await everywhere(harness, message)
    expect(shown).toBe(at)
    if (message === second) expect(why).toBe("held")
    expect(lane).toMatchObject({ nextDueAt: new Date(at), heldUntil: new Date(at) })
  }
})

test("behind the head of an ordered endpoint a delivery starts when the head does; paused, nobody knows when", async () => {
  const harness = await Harness.start()
  harness.receiver.always("/", 500)
  const endpointId = await harness.endpoint({ ordered: true, retry: { delays: [60], maxAttempts: 5 } })
  const head = await harness.send()
  await harness.published("delivery.attempt", 1)
  const behind = await harness.send()
  const at = harness.clock.now() + MINUTE
  expect(await everywhere(harness, head)).toMatchObject({ at, why: "retry" })
  expect(await everywhere(harness, behind)).toMatchObject({ at, why: "behind", lane: { reason: "retry" } })
  await harness.posthorn.endpoints.pause("acme", endpointId)
  expect(await everywhere(harness, head)).toMatchObject({
    at: null,
    why: "paused",
    lane: { reason: "paused", nextDueAt: null },
  })
  await harness.posthorn.endpoints.update("acme", endpointId, { disabled: true })
  expect(await everywhere(harness, behind)).toMatchObject({ at: null, why: "disabled" })
})

test("the readable view says the same, as far as SQL can", async () => {
  // SQL compares with the real time; nothing is delivered by another one.
  const harness = await Harness.start({ deliver: false })
  const now = Date.now()
  const endpointId = await harness.endpoint({ ordered: true })
  await harness.posthorn.endpoints.pause("acme", endpointId)
  const [first, second] = [await harness.send(), await harness.send()]
  const later = await harness.send({}, { deliverAt: new Date(now + 60 * MINUTE) })
  const waits = async () => {
    const rows = await harness.sql(
      "SELECT message_id, waits_for, next_attempt FROM webhook_deliveries_readable",
    )
    return (message: string) => rows.find(({ message_id }) => message_id === message)!
  }
  expect((await waits())(first)).toMatchObject({ waits_for: "paused", next_attempt: null })
  await harness.close()
  await harness.sql(`UPDATE endpoints SET paused = ${harness.ground.kind === "sqlite" ? "0" : "false"}`)
  await harness.sql(
    "UPDATE webhook_deliveries SET next_retry_at = ? WHERE message_id = ?",
    now + 30 * MINUTE,
    first,
  )
  const shown = await waits()
  const time = (message: string) => new Date(shown(message).next_attempt as string).getTime()
  expect([first, second, later].map((one) => shown(one).waits_for)).toEqual(["retry", "behind", "scheduled"])
  expect([first, second, later].map(time)).toEqual([now + 30 * MINUTE, now + 30 * MINUTE, now + 60 * MINUTE])
  await harness.sql("UPDATE endpoints SET hold_until = ?", now + 45 * MINUTE)
  const held = await waits()
  expect([first, second, later].map((one) => held(one).waits_for)).toEqual(["held", "held", "scheduled"])
})

import { expect, test } from "vitest"
import { Harness } from "../support/harness.ts"
import { LogLines } from "../support/log-lines.ts"

test("close waits for requests in flight and writes their outcomes", async () => {
  const harness = await Harness.start({ closeTimeoutMs: 5000 })
  let answer = () => {}
  harness.receiver.always("/", (_request, response) => {
    answer = () => void response.end("late")
  })
  await harness.endpoint()
  await harness.send()
  await harness.receiver.arrived("/", 1)
  const closing = harness.posthorn.close()
  answer()
  await closing
  expect((await harness.rows())[0]).toMatchObject({ status: "delivered", attempt_count: 1 })
})

test("a request that the deadline of a close cuts off is not an attempt; its delivery stays due and is sent by the next start", async () => {
  const harness = await Harness.start({ closeTimeoutMs: 0 })
  harness.receiver.queue("/", () => {})
  await harness.endpoint()
  const id = await harness.send()
  await harness.receiver.arrived("/", 1)
  await harness.close()
  expect((await harness.rows())[0]).toMatchObject({ status: "pending", attempt_count: 0, stalls: 0 })
  expect(await harness.ground.inHand()).toEqual([])
  await harness.open()
  const [, second] = await harness.receiver.arrived("/", 2)
  expect(second!.id).toBe(id)
  await harness.published("delivery.delivered", 1)
  expect(await harness.sql("SELECT status FROM attempts ORDER BY seq")).toEqual([
    { status: "unknown" },
    { status: "succeeded" },
  ])
})

test("a stop that cuts requests off says how many; one that does not says nothing", async () => {
  const log = new LogLines()
  const harness = await Harness.start({ closeTimeoutMs: 0, logger: log.logger })
  const cutOff = "cut off"
  harness.receiver.queue(
    "/",
    () => {},
    () => {},
  )
  const ids = [await harness.endpoint({ eventTypes: ["a"] }), await harness.endpoint({ eventTypes: ["b"] })]
  expect(ids).toHaveLength(2)
  for (const eventType of ["a", "b"]) await harness.send({}, { eventType })
  await harness.receiver.arrived("/", 2)
  await harness.close()
  expect(log.about(cutOff)).toMatchObject([{ level: 40, requests: 2, deadline_ms: 0 }])
  await harness.open()
  await harness.published("delivery.delivered", 2)
  await harness.close()
  expect(log.about(cutOff)).toHaveLength(1)
})

test("a closed Posthorn refuses politely, twice closed is closed", async () => {
  const harness = await Harness.start()
  await harness.endpoint()
  const { posthorn } = harness
  await posthorn.close()
  await posthorn.close()
  await expect(posthorn.send("acme", { eventType: "a", payload: {} })).rejects.toMatchObject({
    code: "closed",
  })
})

test("sends that are in flight when it closes are either refused or kept", async () => {
  const harness = await Harness.start()
  await harness.endpoint({ eventTypes: ["nothing"] })
  const sends = Array.from({ length: 500 }, () => harness.send())
  const closing = harness.posthorn.close()
  const accepted = (await Promise.allSettled(sends)).filter(({ status }) => status === "fulfilled").length
  await closing
  expect(await harness.sql("SELECT count(*) AS n FROM messages")).toEqual([{ n: accepted }])
})

test("a send made while it closes never hangs", async () => {
  for (let turns = 0; turns < 12; turns++) {
    const harness = await Harness.start()
    await harness.endpoint({ eventTypes: ["nothing"] })
    const closing = harness.posthorn.close()
    for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve))
    const outcome = await harness.send().then(
      () => "kept",
      (error) => error.code,
    )
    await closing
    const kept = (await harness.sql("SELECT count(*) AS n FROM messages"))[0]!.n
    expect(outcome).toBe(kept === 1 ? "kept" : "closed")
  }
})

test("a restart finds what is due in more lanes than one page of the scan", { timeout: 60_000 }, async () => {
  const harness = await Harness.start()
  await harness.endpoint({}, "/many")
  const url = harness.receiver.url("/many")
  await Promise.all(Array.from({ length: 1099 }, () => harness.posthorn.endpoints.create("acme", { url })))
  await harness.sql("UPDATE endpoints SET paused = true")
  await harness.send()
  await harness.close()
  await harness.sql("UPDATE endpoints SET paused = false")
  await harness.open()
  await harness.receiver.arrived("/many", 1100)
})

test("a listener that throws or rejects harms nobody", async () => {
  const harness = await Harness.start()
  harness.posthorn.on("delivery.attempt", () => {
    throw new Error("listener broke")
  })
  harness.posthorn.on("delivery.delivered", (async () => {
    throw new Error("listener rejected")
  }) as () => void)
  await harness.endpoint()
  for (let i = 0; i < 3; i++) await harness.send()
  await harness.published("delivery.delivered", 3)
})

/** Summaries of live events over HTTP: of a real server that accepts, delivers and fails. */
import { expect, onTestFinished, test } from "vitest"
import { Receiver } from "../support/receiver.ts"
import { EventReader } from "./support/event-reader.ts"
import { ApiServer } from "./support/server.ts"

async function start() {
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  receiver.always("/bad", 500)
  const server = await ApiServer.start()
  const { applications, endpoints, keys } = server.posthorn
  const retry = { delays: [1], maxAttempts: 1, breaker: false } as const
  for (const uid of ["good", "bad"]) {
    await applications.create({ uid, name: uid })
    await endpoints.create(uid, { uid, url: receiver.url(`/${uid}`), retry })
  }
  const open = (query: string, key = server.key, lastEventId?: string) =>
    EventReader.open(server.url, { query, key, lastEventId })
  const send = async (app: string, count: number) => {
    for (let n = 0; n < count; n++)
      await server.call("POST", `/app/${app}/msg`, { body: { eventType: "order.paid", payload: { n } } })
  }
  return { server, keys, open, send }
}

/** The sums of all summaries. */
function total({ events }: EventReader) {
  const counts: { [kind: string]: number } = {}
  const sum = { accepted: 0, failedAttempts: 0, counts, inFull: [] as string[] }
  for (const { kind, data } of events) {
    expect(kind).toBe("summary")
    sum.accepted += data.accepted
    sum.failedAttempts += data.failedAttempts
    for (const [name, count] of Object.entries<number>(data.counts))
      counts[name] = (counts[name] ?? 0) + count
    sum.inFull.push(...data.events.map(({ type }: { type: string }) => type))
  }
  return sum
}

const isZero = (reader: EventReader) => {
  const { accepted, counts } = reader.events.at(-1)?.data ?? {}
  return accepted === 0 && Object.keys(counts).length === 0
}

test("the counts of all periods are those of the deliveries, and zeros end them", async () => {
  const { keys, open, send } = await start()
  const operator = await open("?summary_ms=250")
  const { token } = await keys.create({
    ...{ name: "portal", scope: "application", appId: "bad", capabilities: ["ViewBase"] },
  })
  const portal = await open("?summary_ms=250", token)
  await Promise.all([send("good", 20), send("bad", 6)])
  await operator.until(() => total(operator).counts["delivery.dead"] === 6 && isZero(operator))
  expect(total(operator)).toMatchObject({
    accepted: 26,
    failedAttempts: 6,
    counts: { "delivery.attempt": 26, "delivery.delivered": 20, "delivery.dead": 6 },
  })
  expect(total(operator).inFull).toContain("endpoint.failing")
  const times = operator.events.map(({ data }) => [data.from, data.to])
  for (const [from, to] of times) expect(to! - from!).toBeGreaterThanOrEqual(249)
  for (const [n, [from]] of times.entries()) if (n > 0) expect(from).toBeGreaterThanOrEqual(times[n - 1]![1]!)
  await portal.until(() => total(portal).counts["delivery.dead"] === 6 && isZero(portal))
  expect(total(portal)).toMatchObject({
    accepted: 6,
    failedAttempts: 6,
    counts: { "delivery.attempt": 6, "delivery.dead": 6 },
  })
})

test("a stream that was cut goes on with what it missed, accepted messages included", async () => {
  const { open, send } = await start()
  const first = await open("?summary_ms=250")
  await send("good", 1)
  await first.until(() => total(first).counts["delivery.delivered"] === 1 && isZero(first))
  first.cut()
  await first.closed
  const watching = await open("?summary_ms=250")
  await send("good", 5)
  await watching.until(() => total(watching).counts["delivery.delivered"] === 5 && isZero(watching))
  const back = await open("?summary_ms=250", undefined, first.lastEventId)
  await back.until(() => back.events.length > 0)
  expect(back.events).toHaveLength(1)
  expect(total(back)).toMatchObject({ accepted: 5, counts: { "delivery.delivered": 5 } })
})

test("a period that makes no sense is refused with the parameter", async () => {
  const { server } = await start()
  for (const period of ["249", "60001", "0", "often", "1.5"])
    expect(await server.call("GET", `/events?summary_ms=${period}`)).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ["query", "summary_ms"] }] },
    })
})

/** An outage of our own network: it is noticed, nothing is counted, and it ends by itself. One tenant's dead hosts are no such case. */
import { expect, test } from "vitest"
import type { PolicyInput } from "../../src/core/policy.ts"
import type { EngineOutageEvent } from "../../src/observe/public-events.ts"
import { TestClock } from "../support/clock.ts"
import { Harness, type HarnessOptions } from "../support/harness.ts"
import { LogLines } from "../support/log-lines.ts"
import { VirtualReceiver } from "../support/virtual-receiver.ts"

type Answer = Parameters<VirtualReceiver["always"]>[1]

const SECOND = 1000
const MINUTE = 60 * SECOND
/** Retries often, so that an attempt that is counted is seen. */
const EAGER: PolicyInput = { delays: [5, 20], maxAttempts: 50, breaker: { failures: 3 } }

interface Installation {
  readonly apps?: readonly string[]
  readonly endpoints?: number
  readonly hosts?: number
  readonly retry?: PolicyInput
}

async function start(installation: Installation = {}, options: HarnessOptions = {}) {
  const { apps = ["acme", "beta"], endpoints = 20, hosts = 5, retry = EAGER } = installation
  const clock = new TestClock()
  const receiver = new VirtualReceiver(clock)
  const harness = await Harness.start({ clock, transport: receiver, random: () => 0.5, ...options })
  const { posthorn } = harness
  const changes: EngineOutageEvent[] = []
  for (const to of ["began", "ended"] as const)
    posthorn.on(`engine.outage.${to}`, (event) => void changes.push(event))

  for (const uid of apps) await posthorn.applications.create({ uid, name: uid })
  const all: { readonly app: string; readonly path: string; readonly id: string }[] = []
  for (let n = 0; n < endpoints; n++) {
    const app = apps[n % apps.length]!
    const path = `/${n}`
    const url = `http://127.0.0.${1 + (n % hosts)}${path}`
    all.push({ app, path, id: (await posthorn.endpoints.create(app, { url, retry })).id })
  }
  const answer = (with_: Answer, afterMs = 0, which = all) => {
    for (const { path } of which) receiver.always(path, with_, afterMs)
  }
  const pass = async (ms: number, stepMs = SECOND) => {
    for (let passed = 0; passed < ms; passed += stepMs) {
      clock.advance(stepMs)
      await harness.calm()
    }
  }
  const send = async () => {
    for (const app of apps) await posthorn.send(app, { eventType: "invoice.paid", payload: {} })
    await harness.calm()
  }
  return { harness, posthorn, clock, receiver, all, changes, answer, pass, send }
}

const types = (changes: readonly EngineOutageEvent[]) => changes.map(({ type }) => type.split(".").at(-1))

async function openBreakers({ posthorn, all }: Awaited<ReturnType<typeof start>>): Promise<string[]> {
  const shown = await Promise.all(all.map(({ app, id }) => posthorn.endpoints.get(app, id)))
  return shown.filter(({ breaker }) => breaker.state !== "closed").map(({ id }) => id)
}

test("our network is gone for ten minutes: nothing is counted, no breaker stays open, all is delivered", {
  timeout: 120_000,
}, async () => {
  const site = await start()
  const { harness, clock, receiver, all, changes, answer, pass, send } = site
  await send()
  await harness.published("delivery.delivered", 20)
  const downAt = clock.now()
  // The resolver fails at once for one half, connections time out for the other.
  answer("dns_error", 0, all.slice(0, 10))
  answer("timeout", 10 * SECOND, all.slice(10))
  await send()
  await pass(20 * SECOND)
  expect(types(changes)).toEqual(["began"])
  expect(changes[0]).toMatchObject({ since: downAt, endpoints: 20, hosts: 5, at: downAt + 15 * SECOND })
  expect(await openBreakers(site)).toEqual([])

  const counted = async () => (await harness.rows()).reduce((sum, row) => sum + Number(row.attempt_count), 0)
  const before = { counted: await counted(), requests: receiver.requests.length }
  await send()
  await pass(10 * MINUTE - 20 * SECOND)
  expect(await counted()).toBe(before.counted)
  const probes = receiver.requests.length - before.requests
  expect(probes).toBeGreaterThan(500)
  expect(probes).toBeLessThanOrEqual(600)
  expect(await openBreakers(site)).toEqual([])
  expect(types(changes)).toEqual(["began"])

  answer(200)
  await pass(MINUTE)
  expect(types(changes)).toEqual(["began", "ended"])
  expect(changes[1]!.uncounted_attempts).toBeGreaterThan(500)
  await harness.published("delivery.delivered", 60)
  const rows = await harness.rows()
  expect(rows.every(({ status }) => status === "delivered")).toBe(true)
  // Messages that were accepted during the outage are delivered by their first attempt.
  expect(rows.slice(40).map((row) => Number(row.attempt_count))).toEqual(Array(20).fill(1))
  expect(await openBreakers(site)).toEqual([])
})

test("breakers that opened in the minute before close again; older ones, and those of answers, stay", async () => {
  const site = await start({ retry: { delays: [3600], maxAttempts: 5, breaker: { failures: 1, open: 600 } } })
  const { clock, receiver, all, harness, changes, answer, pass, send, posthorn } = site
  const [older, answering] = all
  answer("timeout", 0, [older!])
  await send()
  expect(await openBreakers(site)).toEqual([older!.id])
  await pass(61 * SECOND)
  answer(503, 0, [answering!])
  await posthorn.send("beta", { eventType: "invoice.paid", payload: {} })
  await harness.calm()
  const downAt = clock.now()
  answer("connection_refused", 0, all.slice(2))
  await send()
  expect(await openBreakers(site)).toHaveLength(20)
  await send()
  const requests = receiver.requests.length
  await pass(15 * SECOND)
  // The lanes of the closed breakers probe at once, without a poll.
  expect(receiver.requests).toHaveLength(requests + 1)
  expect(changes).toMatchObject([{ at: downAt + 15 * SECOND, endpoints: 18 }])
  expect((await openBreakers(site)).sort()).toEqual([older!.id, answering!.id].sort())

  const before = harness.events.filter(({ type }) => type === "delivery.delivered").length
  answer(200)
  await pass(10 * SECOND)
  await harness.published("delivery.delivered", before + 18)
})

test.each<[string, Installation]>([
  ["nine endpoints", { endpoints: 9 }],
  ["two hosts", { hosts: 2 }],
])("%s are too few to tell", async (_name, installation) => {
  const { changes, answer, pass, send } = await start(installation)
  await send()
  answer("network_error")
  await send()
  await pass(5 * MINUTE)
  expect(changes).toEqual([])
})

test("an endpoint that answers within 15 s shows that the network works", async () => {
  const { all, changes, answer, pass, send, posthorn } = await start()
  await send()
  answer("timeout", 0, all.slice(1))
  for (let n = 0; n < 20; n++) {
    await posthorn.send("acme", { eventType: "invoice.paid", payload: {} })
    await pass(14 * SECOND)
  }
  expect(changes).toEqual([])
})

test("503 everywhere is an answer", async () => {
  const { changes, answer, pass, send } = await start()
  answer(503)
  await send()
  await pass(5 * MINUTE)
  expect(changes).toEqual([])
})

test("the dead hosts of one application are no outage of ours, though nobody else sends", async () => {
  const { all, changes, answer, pass, send, posthorn } = await start({ endpoints: 40 })
  await send()
  answer(
    "timeout",
    0,
    all.filter(({ app }) => app === "acme"),
  )
  await posthorn.send("acme", { eventType: "invoice.paid", payload: {} })
  await pass(10 * MINUTE)
  expect(changes).toEqual([])
})

test("an installation with a single application is protected too", async () => {
  const { changes, answer, pass, send } = await start({ apps: ["acme"] })
  await send()
  answer("timeout")
  await send()
  await pass(15 * SECOND)
  expect(types(changes)).toEqual(["began"])
})

test("the outage ends with the first answer, also one of status 500, and that attempt counts", async () => {
  const { harness, all, changes, answer, pass, send } = await start()
  await send()
  answer("network_error")
  await send()
  await pass(30 * SECOND)
  expect(types(changes)).toEqual(["began"])
  answer(500, 0, all.slice(0, 1))
  await pass(30 * SECOND)
  expect(types(changes)).toEqual(["began", "ended"])
  const attempts = harness.events.filter(
    (event) => event.type === "delivery.attempt" && event.response_status === 500,
  )
  expect(attempts.length).toBeGreaterThan(0)
})

test("a request that started during the outage and times out after its end does not count", async () => {
  const { harness, receiver, all, changes, answer, pass, send } = await start({
    retry: { delays: [3600], maxAttempts: 5, breaker: false },
  })
  await send()
  answer("network_error")
  await send()
  await pass(15 * SECOND)
  expect(types(changes)).toEqual(["began"])
  const [slow] = all
  answer("timeout", 60 * SECOND, [slow!])
  const before = receiver.to(slow!.path).length
  await send()
  // Each of the 20 lanes has its turn as a probe.
  await pass(25 * SECOND)
  expect(receiver.to(slow!.path)).toHaveLength(before + 1)
  answer(200)
  await pass(20 * SECOND)
  expect(types(changes)).toEqual(["began", "ended"])
  expect(receiver.to(slow!.path)).toHaveLength(before + 1)
  await pass(40 * SECOND)
  await harness.published("delivery.delivered", 40)
  const newest = (await harness.rows()).slice(40)
  expect(newest.map((row) => Number(row.attempt_count))).toEqual(Array(20).fill(1))
})

test("a second outage is noticed like the first", async () => {
  const { changes, answer, pass, send } = await start()
  for (let n = 0; n < 2; n++) {
    answer(200)
    await send()
    await pass(MINUTE)
    answer("timeout")
    await send()
    await pass(15 * SECOND)
  }
  expect(types(changes)).toEqual(["began", "ended", "began"])
})

test("endpoints that stay silent after an outage has ended do not bring about another one", async () => {
  const { all, changes, answer, pass, send } = await start()
  await send()
  answer("timeout")
  await send()
  await pass(20 * SECOND)
  answer(200, 0, all.slice(0, 1))
  // Each of the 20 lanes has its turn as a probe.
  await pass(40 * SECOND)
  expect(types(changes)).toEqual(["began", "ended"])
  await pass(5 * MINUTE)
  expect(types(changes)).toEqual(["began", "ended"])
})

test("a delivery whose age ends during the outage gets an attempt that counts", async () => {
  const { harness, changes, answer, pass, send } = await start({
    retry: { delays: [5], maxAge: 60, breaker: false },
  })
  await send()
  answer("network_error")
  await send()
  await pass(3 * MINUTE)
  expect(types(changes)).toEqual(["began"])
  answer(200)
  await pass(30 * SECOND)
  await harness.published("delivery.delivered", 40)
})

test("the operator is told by the log: an error when it begins, a warning when it ends", async () => {
  const log = new LogLines()
  const { clock, answer, pass, send } = await start({}, { logger: log.logger })
  await send()
  const since = new Date(clock.now()).toISOString()
  answer("network_error")
  await send()
  await pass(15 * SECOND)
  expect(log.about("No endpoint answers")).toMatchObject([{ level: 50, since, endpoints: 20, hosts: 5 }])
  answer(200)
  await pass(20 * SECOND)
  const [ended] = log.about("An endpoint answers again")
  expect(ended).toMatchObject({ level: 40, since })
  expect(ended!.duration_ms).toBeGreaterThanOrEqual(15 * SECOND)
})

test("an attempt that is not counted is in the history, with its cause", async () => {
  const { posthorn, all, answer, pass, send } = await start()
  await send()
  answer("dns_error")
  await send()
  await pass(MINUTE)
  const { data } = await posthorn.attempts.list({ endpoint: all[0]!.id })
  expect(data[0]).toMatchObject({
    status: "unknown",
    error: "not counted, since no endpoint answers: dns_error",
  })
})

test("it can be turned off", async () => {
  const { changes, answer, pass, send } = await start({}, { ownOutage: false })
  await send()
  answer("network_error")
  await send()
  await pass(MINUTE)
  expect(changes).toEqual([])
})

test("health names the outage while it lasts", async () => {
  const { posthorn, clock, answer, pass, send } = await start()
  await send()
  const downAt = new Date(clock.now()).toISOString()
  answer("network_error")
  await send()
  await pass(15 * SECOND)
  expect(await posthorn.health()).toEqual({
    ready: true,
    problem: `No endpoint has answered since ${downAt}`,
  })
  answer(200)
  await pass(20 * SECOND)
  expect(await posthorn.health()).toEqual({ ready: true, problem: null })
})

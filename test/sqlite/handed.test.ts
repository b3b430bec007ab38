/** A lane that is at work, or was a moment ago, is handed what is accepted for it: one transaction, and the request goes out. */
import { expect, test } from "vitest"
import type { Store } from "../../src/store/store.ts"
import { Harness, type HarnessOptions } from "../support/harness.ts"

/** Counts what is asked of the store. */
async function start(options: HarnessOptions = {}) {
  const asked: { [name: string]: number } = {}
  const wrapStore = (store: Store): Store =>
    new Proxy(store, {
      get: (target, name: keyof Store) => {
        const value = target[name]
        return typeof value !== "function"
          ? value
          : (...args: unknown[]) => {
              asked[name] = (asked[name] ?? 0) + 1
              return (value as (...args: unknown[]) => unknown).apply(target, args)
            }
      },
    })
  const harness = await Harness.start({ wrapStore, ...options })
  const times = (name: keyof Store) => asked[name] ?? 0
  return { harness, times }
}

/** With one endpoint, whose lane has delivered a message and rests. */
async function startAndRest() {
  const started = await start()
  const endpointId = await started.harness.endpoint()
  await started.harness.send()
  await started.harness.published("delivery.delivered", 1)
  await started.harness.quiet()
  return { ...started, endpointId }
}

test("only the first of many is asked for", async () => {
  const { harness, times } = await start()
  await harness.endpoint()
  for (let n = 1; n <= 5; n++) {
    await harness.send({ n })
    await harness.published("delivery.delivered", n)
  }
  expect(times("fetch")).toBe(1)
  expect(harness.receiver.requests.map(({ body }) => JSON.parse(body.toString()).n)).toEqual([1, 2, 3, 4, 5])
  const attempts = (await harness.posthorn.attempts.list()).data
  expect(attempts.map(({ attemptNumber, status }) => [attemptNumber, status])).toEqual(
    Array(5).fill([1, "succeeded"]),
  )
})

test("after ten seconds with nothing to do the lane is given back, and the next one is asked for again", async () => {
  const { harness, times } = await startAndRest()
  harness.clock.advance(9_999)
  await harness.quiet()
  expect(times("closeLane")).toBe(0)
  harness.clock.advance(1)
  await harness.quiet()
  expect(times("closeLane")).toBe(1)
  await harness.send()
  await harness.published("delivery.delivered", 2)
  expect(times("fetch")).toBe(2)
})

test("one that fails is retried as ever, beside what is handed over meanwhile", async () => {
  const { harness } = await start()
  await harness.endpoint({ retry: { delays: [0.5], maxAttempts: 3 } })
  await harness.send()
  await harness.published("delivery.delivered", 1)
  harness.receiver.queue("/", 500)
  await harness.send()
  await harness.published("delivery.attempt", 2)
  await harness.send()
  await harness.published("delivery.delivered", 2)
  harness.clock.advance(500)
  await harness.published("delivery.delivered", 3)
  expect((await harness.rows()).map(({ attempt_count }) => attempt_count)).toEqual([1, 2, 1])
})

test("an endpoint that was paused a moment ago is sent nothing, and gets it when it goes on", async () => {
  const { harness } = await start()
  const id = await harness.endpoint()
  await harness.send()
  await harness.published("delivery.delivered", 1)
  await harness.posthorn.endpoints.pause("acme", id)
  await harness.send()
  await harness.quiet()
  expect(harness.receiver.requests).toHaveLength(1)
  await harness.posthorn.endpoints.resume("acme", id)
  await harness.published("delivery.delivered", 2)
})

test("what is handed over while its endpoint is changed again and again goes out, with no time passing", async () => {
  const { harness } = await start()
  const id = await harness.endpoint()
  const change = (n: number) => harness.posthorn.endpoints.update("acme", id, { description: `${n}` })
  for (let n = 1; n <= 100; n++) {
    const changes = [change(n), change(-n), change(n + 1000)]
    await changes[n % 3]
    await Promise.all([harness.send(), ...changes])
    await harness.published("delivery.delivered", n)
  }
})

test("a stop sends nothing more, and leaves what was handed over to the next start", async () => {
  const { harness } = await start()
  await harness.endpoint({ rateLimit: 1 })
  await harness.send()
  await harness.published("delivery.delivered", 1)
  for (let n = 0; n < 3; n++) await harness.send()
  await harness.close()
  expect(await harness.ground.inHand()).toEqual([])
  expect(harness.receiver.requests).toHaveLength(1)
  await harness.open()
  for (let n = 2; n <= 4; n++) {
    await harness.published("delivery.delivered", n)
    harness.clock.advance(1000)
  }
  const attempts = (await harness.posthorn.attempts.list()).data
  expect(attempts.filter(({ status }) => status !== "succeeded")).toEqual([])
})

test("with a cap for each poll everything is asked for", async () => {
  const { harness, times } = await start({ maxPerPoll: 1 })
  await harness.endpoint()
  for (let n = 1; n <= 2; n++) {
    await harness.send()
    await harness.poll()
    await harness.published("delivery.delivered", n)
  }
  expect(times("fetch")).toBeGreaterThanOrEqual(2)
  expect(times("closeLane")).toBe(0)
})

test("a lane that rests gives its place to those that wait for one", async () => {
  const { harness } = await start({ maxInFlight: 1 })
  for (let n = 0; n < 3; n++) await harness.endpoint()
  await harness.send()
  await harness.published("delivery.delivered", 3)
})

test("a refused message closes no lane, but for the first in a while", async () => {
  const { harness, times } = await start()
  await harness.endpoint()
  const refused = () =>
    expect(harness.posthorn.send("nobody", { eventType: "a", payload: {} })).rejects.toThrow()
  const sendAfterRefusal = async (n: number) => {
    await refused()
    await harness.send()
    await harness.published("delivery.delivered", n)
  }
  await sendAfterRefusal(1)
  await sendAfterRefusal(2)
  const fetches = times("fetch")
  for (let n = 3; n <= 6; n++) await sendAfterRefusal(n)
  expect(times("fetch")).toBe(fetches)
})

test("a change of its endpoint closes a lane that rests before it is asked again", async () => {
  const { harness, times, endpointId } = await startAndRest()
  const fetches = times("fetch")
  await harness.posthorn.endpoints.update("acme", endpointId, { description: "changed" })
  await harness.quiet()
  expect(times("fetch")).toBe(fetches + 1)
  await harness.send()
  await harness.published("delivery.delivered", 2)
  expect(times("fetch")).toBe(fetches + 1)
  const attempts = (await harness.posthorn.attempts.list()).data
  expect(attempts.map(({ status }) => status)).toEqual(["succeeded", "succeeded"])
})

test("when somebody else changed the file, a lane that rests is given back", async () => {
  const { harness, times } = await startAndRest()
  const fetches = times("fetch")
  await harness.sql("UPDATE applications SET name = 'typed by an operator'")
  await harness.poll()
  await harness.quiet()
  expect(times("closeLane")).toBe(1)
  expect(times("fetch")).toBe(fetches)
})

test("what is handed to a claim that nobody here has any more goes back, and is sent", async () => {
  const GONE = 999
  let token = 0
  const forge = (store: Store): Store => ({
    ...store,
    async accept(...args) {
      const [accepted] = await store.accept(...args)
      const lanes = accepted!.lanes.map((lane) => {
        if (lane.handed === undefined || token !== 0) return lane
        token = lane.handed.token
        return { ...lane, handed: { ...lane.handed, token: GONE } }
      })
      return [{ ...accepted!, lanes }]
    },
    giveBack: (claims) =>
      store.giveBack(claims.map((claim) => (claim.token === GONE ? { ...claim, token } : claim))),
  })
  const harness = await Harness.start({ wrapStore: forge })
  await harness.endpoint()
  for (let n = 1; n <= 3; n++) {
    await harness.send({ n })
    await harness.published("delivery.delivered", n)
  }
  expect(token).toBeGreaterThan(0)
  const attempts = (await harness.posthorn.attempts.list()).data
  expect(attempts.map(({ status }) => status)).toEqual(["succeeded", "succeeded", "succeeded"])
})

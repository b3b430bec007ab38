/** A lane that is at work, or was a moment ago, is handed what is accepted for it: one transaction, and the request goes out. */
import { expect, test } from "vitest"
import type { Store } from "../../src/store/store.ts"
import { Harness, type HarnessOptions } from "../support/harness.ts"
import { wrapLanes } from "../support/wrap-lanes.ts"

/** Counts the calls of lane sessions. */
async function start(options: HarnessOptions = {}) {
  const calls = { fetch: 0, close: 0, opens: 0 }
  const wrapStore = (store: Store) =>
    wrapLanes(store, (session) => ({
      fetch: async (...args) => {
        calls.fetch++
        const work = await session.fetch(...args)
        if (session.isOpen) calls.opens++
        return work
      },
      close: () => {
        calls.close++
        return session.close()
      },
    }))
  const harness = await Harness.start({ wrapStore, ...options })
  const times = (name: keyof typeof calls) => calls[name]
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
  expect(times("close")).toBe(0)
  harness.clock.advance(1)
  await harness.quiet()
  expect(times("close")).toBe(1)
  await harness.send()
  await harness.published("delivery.delivered", 2)
  expect(times("fetch")).toBe(2)
})

test("a delivery that fails is retried by its schedule, beside those that are handed over meanwhile", async () => {
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

test("a delivery that is handed over while its endpoint is changed again and again is sent, with no time passing", async () => {
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
  expect(times("opens")).toBe(0)
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

test("when another process changed the file, a resting lane is handed nothing until it has fetched", async () => {
  const { harness, times } = await startAndRest()
  const fetches = times("fetch")
  await harness.sql("UPDATE applications SET name = 'typed by an operator'")
  await harness.poll()
  await harness.quiet()
  expect(times("fetch")).toBe(fetches)
  await harness.send()
  await harness.published("delivery.delivered", 2)
  expect(times("fetch")).toBe(fetches + 1)
})

test("a delivery that is handed to a session which was replaced goes back, and is sent", async () => {
  let replaced = false
  const wrapStore = (store: Store): Store => {
    let opened: Parameters<Store["openLane"]> | null = null
    const sessions = wrapLanes(store, (session) => ({
      settleIfClaimed: async (outcomes) => {
        const results = await session.settleIfClaimed(outcomes)
        const [claim, listener, knownVersion] = opened!
        // As after a claim with another token, while the thread still has the lane open for this one.
        if (!replaced) store.openLane({ ...claim, token: claim.token + 1000 }, listener, knownVersion)
        replaced = true
        return results
      },
    }))
    return {
      ...sessions,
      openLane: (...args) => {
        opened = args
        return sessions.openLane(...args)
      },
    }
  }
  const harness = await Harness.start({ wrapStore })
  await harness.endpoint()
  for (let n = 1; n <= 3; n++) {
    await harness.send({ n })
    await harness.published("delivery.delivered", n)
  }
  expect(replaced).toBe(true)
  const attempts = (await harness.posthorn.attempts.list()).data
  expect(attempts.map(({ status }) => status)).toEqual(["succeeded", "succeeded", "succeeded"])
})

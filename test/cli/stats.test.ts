/** A delivery is counted by the same word wherever it is counted: in all, of an application, of an endpoint, by each way of asking. */
import { expect, test } from "vitest"
import type { StatusCounts } from "../../src/index.ts"
import { World } from "./world.ts"

const NONE: StatusCounts = { pending: 0, failed: 0, delivered: 0, dead: 0, calledOff: 0 }

/** Deliveries in every state, each state at an endpoint of its own. */
async function everyState() {
  const world = await World.start()
  const { posthorn } = world.server
  const { receiver } = world
  await world.deadLetter()
  await posthorn.deliveries.cancel(await world.waiting())
  await world.waiting()
  receiver.always("/again", 500)
  await posthorn.endpoints.create("acme", {
    uid: "again",
    url: receiver.url("/again"),
    eventTypes: ["fails.once"],
    retry: { delays: [3600], maxAttempts: 3 },
  })
  await world.send("fails.once")
  await expect.poll(() => posthorn.stats()).toEqual(ALL)
  return world
}

const EXPECTED = {
  main: { ...NONE, delivered: 1 },
  down: { ...NONE, dead: 1 },
  paused: { ...NONE, pending: 1, dead: 1, calledOff: 1 },
  again: { ...NONE, failed: 1 },
}
const ALL = { pending: 1, failed: 1, delivered: 1, dead: 2, calledOff: 1 }

test("the library, the API and the command line count a delivery under the same word", async () => {
  const { server, desk } = await everyState()
  const { posthorn } = server
  const asked = async (query: string) => (await server.call("GET", `/stats/delivery${query}`)).body
  const typed = async (...args: string[]) =>
    JSON.parse((await desk.posthorn(["stats", "--json", ...args])).stdout)
  expect(await posthorn.stats()).toEqual(ALL)
  expect(await posthorn.stats("acme")).toEqual(ALL)
  expect(await asked("?app_id=acme")).toEqual(ALL)
  expect(await typed("--app", "acme")).toEqual(ALL)
  for (const [endpoint, counts] of Object.entries(EXPECTED)) {
    expect(await posthorn.endpoints.stats("acme", endpoint), endpoint).toEqual(counts)
    expect(await asked(`?app_id=acme&endpoint_id=${endpoint}`), endpoint).toEqual(counts)
  }
  expect(await typed("--app", "acme", "--endpoint", "again")).toEqual(EXPECTED.again)
})

test("Svix's figures of an endpoint are the same counts in its words", async () => {
  const { server } = await everyState()
  for (const [endpoint, { pending, failed, delivered, dead, calledOff }] of Object.entries(EXPECTED))
    expect((await server.call("GET", `/app/acme/endpoint/${endpoint}/stats`)).body, endpoint).toEqual({
      success: delivered,
      pending: 0,
      sending: pending + failed,
      fail: dead - calledOff,
      canceled: calledOff,
    })
})

test("a span narrows every count by when the message was received", async () => {
  const { server, desk } = await everyState()
  const { posthorn } = server
  const later = new Date(Date.now() + 3_600_000)
  expect(await posthorn.stats(undefined, { since: later })).toEqual(NONE)
  expect(await posthorn.stats("acme", { until: later })).toEqual(ALL)
  const path = `/stats/delivery?since=${later.toISOString()}`
  expect((await server.call("GET", path)).body).toEqual(NONE)
  expect((await server.call("GET", `${path}&app_id=acme&endpoint_id=main`)).body).toEqual(NONE)
  const { stdout } = await desk.posthorn(["stats", "--json", "--since", "1d"])
  expect(JSON.parse(stdout)).toEqual(ALL)
})

test("an endpoint needs its application, and must be one of its", async () => {
  const { server } = await everyState()
  expect(await server.call("GET", "/stats/delivery?endpoint_id=main")).toMatchObject({ status: 422 })
  expect(await server.call("GET", "/stats/delivery?app_id=acme&endpoint_id=none")).toMatchObject({
    status: 404,
  })
})

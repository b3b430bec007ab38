/** What retries cost over HTTP: of the organization and of an application. */
import { expect, onTestFinished, test } from "vitest"
import { Receiver } from "../support/receiver.ts"
import { ApiServer } from "./support/server.ts"

/** Three messages for an endpoint that works and one that is down, each tried once. */
async function start() {
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  const server = await ApiServer.start()
  const { applications, endpoints } = server.posthorn
  receiver.always("/down", 500)
  for (const app of ["acme", "other"]) await applications.create({ uid: app, name: app })
  for (const uid of ["main", "down"])
    await endpoints.create("acme", {
      uid,
      url: receiver.url(`/${uid}`),
      retry: { delays: [1], maxAttempts: 1 },
    })
  let left = 6
  const settled = new Promise<void>((resolve) => {
    server.posthorn.on("delivery.attempt", () => --left === 0 && resolve())
  })
  for (let i = 0; i < 3; i++) await server.posthorn.send("acme", { eventType: "a", payload: { i } })
  await settled
  return server
}

test("a report of all, of an application, of an endpoint, and by group", async () => {
  const server = await start()
  const { status, body } = await server.call("GET", "/statistics/cost?by=endpoint")
  expect(status).toBe(200)
  expect(body).toMatchObject({
    currency: null,
    total: { attempts: 6, delivered: 3, dead: 3, retries: 0, wastedShare: 0.5, price: null },
    byAttempt: [{ number: 1, attempts: 6, delivered: 3, successRate: 0.5, costShare: 1, deliveredShare: 1 }],
    whatIf: null,
  })
  expect(body.groups.map(({ name }: { name: string }) => name).toSorted()).toEqual(["down", "main"])
  expect(Date.parse(body.until) - Date.parse(body.since)).toBe(7 * 86_400_000)
  const total = async (path: string) => (await server.call("GET", path)).body.total
  expect(await total("/app/acme/statistics/cost?endpoint_id=main")).toMatchObject({
    attempts: 3,
    delivered: 3,
  })
  expect(await total("/app/other/statistics/cost")).toMatchObject({ attempts: 0 })
  expect(await total("/statistics/cost?event_type=none")).toMatchObject({ attempts: 0 })
})

test("the endpoints that fail, and a what-if", async () => {
  const server = await start()
  const { body } = await server.call("GET", "/statistics/cost?failing=true&max_attempts=1")
  expect(body).toMatchObject({
    groups: [{ name: "down", attempts: 3, health: "degraded" }],
    whatIf: {
      maxAttempts: 1,
      maxAge: null,
      saved: { atLeast: { attempts: 0 }, atMost: { attempts: 0 } },
      lost: { atLeast: 0, atMost: 0 },
      text: "stop after 1 attempt: 0 % attempts, 0 of 3 lost",
    },
  })
})

test("an application's key reads no costs: prices are the operator's", async () => {
  const server = await start()
  const { id: appId } = await server.posthorn.applications.get("acme")
  const { token: key } = await server.posthorn.keys.create({ name: "k", scope: "application", appId })
  for (const path of ["/statistics/cost", "/app/acme/statistics/cost"])
    expect(await server.call("GET", path, { key })).toMatchObject({ status: 403 })
})

test("bad input is refused with its parameter", async () => {
  const server = await start()
  for (const [query, field] of [
    ["by=country", "by"],
    ["limit=0", "limit"],
    ["max_attempts=2", "max_attempts"],
    ["max_attempts=20", "max_attempts"],
    ["max_age=0", "max_age"],
    ["max_age=99999", "max_age"],
    ["since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z", "since"],
    ["failing=true&by=policy", "by"],
    ["sinse=1", "sinse"],
  ])
    expect(await server.call("GET", `/statistics/cost?${query}`), query).toMatchObject({
      status: 422,
      body: { detail: [{ loc: expect.arrayContaining(["query", field]) }] },
    })
  expect(await server.call("GET", "/app/nobody/statistics/cost")).toMatchObject({ status: 404 })
})

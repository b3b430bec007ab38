/** The health of endpoints over HTTP: of one, of an application's, and of all. */
import { expect, onTestFinished, test } from "vitest"
import { Receiver } from "../support/receiver.ts"
import { ApiServer } from "./support/server.ts"

/** An application with a healthy, an open and a paused endpoint; another application with a healthy endpoint. */
async function start() {
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  const server = await ApiServer.start()
  for (const app of ["acme", "other"]) await server.call("POST", "/app", { body: { name: app, uid: app } })
  const endpoint = async (app: string, uid: string, more = {}) => {
    const body = { url: receiver.url(`/${uid}`), uid, ...more }
    expect((await server.call("POST", `/app/${app}/endpoint`, { body })).status).toBe(201)
  }
  receiver.always("/down", 503)
  await endpoint("acme", "main")
  await endpoint("acme", "down", { retry: { delays: [3600], maxAttempts: 2, breaker: { failures: 1 } } })
  await endpoint("acme", "paused")
  await endpoint("other", "elsewhere")
  await server.call("POST", "/app/acme/endpoint/paused/pause")
  const opened = new Promise((resolve) => server.posthorn.on("endpoint.breaker.opened", resolve))
  const delivered = new Promise((resolve) => server.posthorn.on("delivery.delivered", resolve))
  await server.call("POST", "/app/acme/msg", { body: { eventType: "a", payload: {} } })
  await Promise.all([opened, delivered])
  return server
}

const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\S+Z$/)
const uidsOf = ({ body }: { readonly body: { readonly data: readonly { endpointUid: string }[] } }) =>
  body.data.map(({ endpointUid }) => endpointUid)

test("one endpoint: state, since when, why, and the numbers", async () => {
  const server = await start()
  const { status, body } = await server.call("GET", "/app/acme/endpoint/down/health")
  expect(status).toBe(200)
  expect(body).toMatchObject({
    endpointUid: "down",
    health: "open",
    since: TIME,
    why: expect.stringMatching(
      /^the circuit breaker opened after 1 failure in a row; last error: HTTP 503; no request before \S+Z$/,
    ),
    lastHour: { attempts: 1, successRate: 0, p95Ms: expect.any(Number) },
    lastDay: { attempts: 1, successRate: 0 },
    failures: 1,
    lastSuccessAt: null,
    oldestWaitingAt: TIME,
  })
  expect((await server.call("GET", "/app/acme/endpoint/main/health")).body).toMatchObject({
    health: "healthy",
    since: null,
    lastHour: { attempts: 1, successRate: 1 },
    lastSuccessAt: TIME,
    oldestWaitingAt: null,
  })
  const { body: paused } = await server.call("GET", "/app/acme/endpoint/paused")
  expect(paused).toMatchObject({ paused: true, pausedAt: TIME })
  expect((await server.call("GET", "/app/acme/endpoint/paused/health")).body).toMatchObject({
    health: "paused",
    since: paused.pausedAt,
  })
  expect(await server.call("GET", "/app/acme/endpoint/nobody/health")).toMatchObject({ status: 404 })
})

test("lists by state, of an application and of all, in pages", async () => {
  const server = await start()
  expect(uidsOf(await server.call("GET", "/app/acme/endpoint-health"))).toEqual(["main", "down", "paused"])
  expect(uidsOf(await server.call("GET", "/app/other/endpoint-health"))).toEqual(["elsewhere"])
  expect(uidsOf(await server.call("GET", "/endpoint-health?health=healthy"))).toEqual(["main", "elsewhere"])
  for (const query of ["health=open&health=paused", "health=open,paused"])
    expect(uidsOf(await server.call("GET", `/endpoint-health?${query}`))).toEqual(["down", "paused"])
  const first = await server.call("GET", "/endpoint-health?limit=3")
  expect(first.body).toMatchObject({ data: { length: 3 }, done: false })
  const next = await server.call("GET", `/endpoint-health?limit=3&iterator=${first.body.iterator}`)
  expect(next.body).toMatchObject({ data: [{ endpointUid: "elsewhere" }], done: true })
  expect(uidsOf(await server.call("GET", "/endpoint-health?order=descending&limit=1"))).toEqual(["elsewhere"])
})

test("an application's key sees its own endpoints, and not all", async () => {
  const server = await start()
  const { id: appId } = await server.posthorn.applications.get("other")
  const { token: key } = await server.posthorn.keys.create({ name: "portal", scope: "application", appId })
  expect(uidsOf(await server.call("GET", "/app/other/endpoint-health", { key }))).toEqual(["elsewhere"])
  expect(await server.call("GET", "/app/acme/endpoint-health", { key })).toMatchObject({ status: 404 })
  expect(await server.call("GET", "/endpoint-health", { key })).toMatchObject({ status: 403 })
})

test("an unknown state, iterator or application is refused", async () => {
  const server = await start()
  for (const [query, field] of [
    ["health=sick", "health"],
    ["iterator=zzz", "iterator"],
    ["state=open", "state"],
  ])
    expect(await server.call("GET", `/endpoint-health?${query}`)).toMatchObject({
      status: 422,
      body: { detail: [{ loc: expect.arrayContaining(["query", field]) }] },
    })
  expect(await server.call("GET", "/app/nobody/endpoint-health")).toMatchObject({ status: 404 })
})

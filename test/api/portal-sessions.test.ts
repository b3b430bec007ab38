/** The sessions of a portal: their rights as another tenant, expired, logged out and read-only, and how they end. */
import { expect, test } from "vitest"
import { TestClock } from "../support/clock.ts"
import { Browser } from "./support/browser.ts"
import { ApiServer, type ApiServerOptions } from "./support/server.ts"

const HOUR_MS = 3_600_000

/** The calls that a customer's browser may make, by capability. */
const CALLS = {
  look: ["GET", "/app/acme/endpoint"],
  follow: ["HEAD", "/events"],
  secret: ["GET", "/app/acme/endpoint/main/secret"],
  rotate: ["POST", "/app/acme/endpoint/main/secret/rotate", {}],
  change: ["PATCH", "/app/acme/endpoint/main", { description: "changed" }],
  resend: [
    "POST",
    "/app/acme/endpoint/main/recover",
    { since: new Date(Date.now() - HOUR_MS).toISOString() },
  ],
  neighbour: ["GET", "/app/globex/endpoint"],
  "neighbour's change": ["PATCH", "/app/globex/endpoint/main", { description: "changed" }],
  everybody: ["GET", "/app"],
  keys: ["GET", "/key"],
  sessions: ["GET", "/session"],
  changes: ["GET", "/change"],
  settings: ["GET", "/setting"],
} as const
type Allowed = readonly (keyof typeof CALLS)[]

async function expectAllowed(browser: Browser, allowed: Allowed) {
  const done: string[] = []
  const refused = new Set<number>()
  for (const [name, [method, path, body]] of Object.entries(CALLS)) {
    const { status } = await browser.call(method, path, body === undefined ? {} : { body })
    if (status < 300) done.push(name)
    else refused.add(status)
  }
  expect(done).toEqual(allowed)
  return [...refused].sort()
}

/** Two applications with an endpoint each, and a browser that opened the first one's portal. */
async function portalOf(access: object, options: ApiServerOptions = {}) {
  const server = await ApiServer.start(options)
  for (const app of ["acme", "globex"]) {
    await server.posthorn.applications.create({ name: app, uid: app })
    await server.posthorn.endpoints.create(app, { uid: "main", url: "http://127.0.0.1:9/" })
  }
  const browser = new Browser(server, "portal")
  const made = await server.call("POST", "/auth/app-portal-access/acme", { body: access })
  expect(made).toMatchObject({ status: 200 })
  const { body } = made
  const opened = await browser.signIn({ code: new URL(body.url).hash.slice("#code=".length) })
  expect(opened.status).toBe(201)
  return { server, browser, id: opened.body.id as string, token: body.token as string }
}

const ALL = ["look", "follow", "secret", "rotate", "change", "resend"] as const

test.for<[object, Allowed]>([
  [{}, ALL],
  [{ capabilities: ["ViewBase"] }, ["look", "follow"]],
  [{ capabilities: ["ViewEndpointSecret"] }, ["look", "follow", "secret"]],
  [{ capabilities: ["ManageEndpointSecret"] }, ["look", "follow", "secret", "rotate"]],
  [{ capabilities: ["CreateAttempts"] }, ["look", "follow", "resend"]],
  [{ capabilities: ["ManageEndpoint"] }, ["look", "follow", "secret", "rotate", "change"]],
  [{ readOnly: true }, ["look", "follow"]],
  [{ readOnly: true, capabilities: ["ManageEndpoint", "ViewEndpointSecret"] }, ["look", "follow", "secret"]],
])("a portal that was opened with %j may do this and no more", async ([access, allowed]) => {
  const { browser } = await portalOf(access)
  expect(await expectAllowed(browser, allowed)).toEqual([403, 404])
})

test("a portal that has expired, logged out, or was revoked may do nothing", async () => {
  const clock = new TestClock()
  const expired = await portalOf({ expiry: 3600 }, { clock })
  clock.advance(3_600_000)
  expect(await expectAllowed(expired.browser, [])).toEqual([401])

  const loggedOut = await portalOf({})
  const cookies = [...loggedOut.browser.cookies]
  expect(await loggedOut.browser.call("POST", "/auth/logout")).toMatchObject({ status: 204 })
  for (const [name, value] of cookies) loggedOut.browser.cookies.set(name, value)
  expect(await expectAllowed(loggedOut.browser, [])).toEqual([401])
  // The key stays: other visitors may have opened sessions with it.
  expect(await loggedOut.server.call("GET", "/app/acme", { key: loggedOut.token })).toMatchObject({
    status: 200,
  })

  const revoked = await portalOf({})
  await revoked.server.call("DELETE", `/session/${revoked.id}`)
  expect(await expectAllowed(revoked.browser, [])).toEqual([401])

  const deleted = await portalOf({})
  await deleted.server.call("DELETE", "/app/acme")
  expect(await expectAllowed(deleted.browser, [])).toEqual([401])
})

test("a portal's reading session can end itself", async () => {
  const { browser } = await portalOf({ readOnly: true })
  expect(await browser.call("POST", "/auth/logout")).toMatchObject({ status: 204 })
})

test("expire-all ends sessions at once or after a grace period, and links that nobody has opened", async () => {
  const clock = new TestClock()
  const { server, browser } = await portalOf({}, { clock })
  const link = async () => {
    const { url } = (await server.call("POST", "/auth/app-portal-access/acme", { body: {} })).body
    return new URL(url).hash.slice("#code=".length)
  }
  const unopened = await link()
  await server.call("POST", "/auth/app/acme/expire-all", { body: { expiry: 60 } })
  expect(await browser.call("GET", "/app/acme/endpoint")).toMatchObject({ status: 200 })
  clock.advance(60_000)
  expect(await browser.call("GET", "/app/acme/endpoint")).toMatchObject({
    status: 401,
    body: { detail: "The token was revoked" },
  })
  const other = new Browser(server, "portal")
  expect(await other.signIn({ code: unopened })).toMatchObject({
    status: 401,
    body: { detail: "this link was revoked: ask for a new one" },
  })
  expect(other.cookies.size).toBe(0)
  const orphan = await link()
  await server.call("DELETE", "/app/acme")
  expect(await other.signIn({ code: orphan })).toMatchObject({ status: 401 })
})

test("expire-all leaves keys alone that have ended", async () => {
  const clock = new TestClock()
  const { server } = await portalOf({ expiry: 60 }, { clock })
  clock.advance(60_000)
  await server.call("POST", "/auth/app-portal-access/acme", { body: {} })
  const versions = async () => {
    const entries = []
    for await (const { id } of server.posthorn.keys.list({ appId: "acme" }))
      entries.push(await server.posthorn.context.store.getEntry("key", null, id, clock.now()))
    return entries.map((entry) => entry!.version).sort()
  }
  expect(await versions()).toEqual([1, 1])
  for (let n = 0; n < 2; n++) await server.call("POST", "/auth/app/acme/expire-all", { body: {} })
  expect(await versions()).toEqual([1, 2])
})

test("a session shows feature flags as its key does", async () => {
  const { server, browser } = await portalOf({ featureFlags: ["beta"] })
  for (const [name, flags] of [
    ["open", {}],
    ["hidden", { featureFlags: ["beta"] }],
    ["secret", { featureFlags: ["alpha"] }],
  ] as const)
    await server.call("POST", "/event-type", { body: { name, description: name, ...flags } })
  const { body } = await browser.call("GET", "/event-type")
  expect(body.data.map(({ name }: { name: string }) => name).sort()).toEqual(["hidden", "open"])
  expect(await browser.call("GET", "/auth/whoami")).toMatchObject({ body: { featureFlags: ["beta"] } })
})

test("another organization sees, lists and ends no session of this one", async () => {
  const { server, browser, id } = await portalOf({})
  const { token } = await server.posthorn.tenant("org_other").keys.create({ name: "other", scope: "admin" })
  const stranger = new Browser(server)
  await stranger.signIn({ key: token })
  expect(await stranger.call("GET", "/app/acme")).toMatchObject({ status: 404 })
  expect((await stranger.call("GET", "/session")).body.data).toHaveLength(1)
  expect(await stranger.call("DELETE", `/session/${id}`)).toMatchObject({ status: 404 })
  expect(await stranger.call("GET", "/setting")).toMatchObject({ status: 403 })
  expect(await browser.call("GET", "/app/acme")).toMatchObject({ status: 200 })
})

test("a list of sessions says when each ends unless it is used", async () => {
  const clock = new TestClock()
  const { server, browser } = await portalOf({ expiry: 18 * 3600 }, { clock })
  const openedAt = clock.wallNow()
  const ends = async () => {
    const [{ expiresAt }] = (await server.call("GET", "/session?app_id=acme")).body.data
    return new Date(expiresAt).getTime() - openedAt
  }
  expect(await ends()).toBe(12 * HOUR_MS)
  clock.advance(8 * HOUR_MS)
  await browser.call("GET", "/app/acme")
  // The use is written after the request.
  await expect.poll(ends).toBe(18 * HOUR_MS)
})

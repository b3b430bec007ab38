/** Sessions of browsers: opened with a key or a login link, used by cookie or by bearer token, ended by time, logout, revocation and their key. */
import { expect, test } from "vitest"
import { OPERATOR } from "../../src/resources/sessions.ts"
import { TestClock } from "../support/clock.ts"
import { LogLines } from "../support/log-lines.ts"
import { Browser } from "./support/browser.ts"
import { EventReader } from "./support/event-reader.ts"
import { ApiServer, type ApiServerOptions } from "./support/server.ts"

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

async function start(options: ApiServerOptions = {}) {
  const server = await ApiServer.start(options)
  await server.call("POST", "/app", { body: { name: "Acme", uid: "acme" } })
  await server.call("POST", "/app", { body: { name: "Globex", uid: "globex" } })
  return server
}

test("a key is exchanged for a cookie that scripts cannot read", async () => {
  const server = await start()
  const browser = new Browser(server)
  const opened = await browser.signIn({ key: server.key })
  expect(opened).toMatchObject({ status: 201, body: { page: "dashboard", name: "test", token: null } })
  const [cookie] = opened.headers.getSetCookie()
  expect(cookie).toMatch(/^posthorn-dashboard=phs_\w+; Max-Age=604800; Path=\/; HttpOnly; SameSite=Strict$/)
  expect(await browser.call("GET", "/app")).toMatchObject({ status: 200 })
  expect(await browser.call("POST", "/app", { body: { name: "Initech" } })).toMatchObject({ status: 201 })
  expect(await browser.call("GET", "/auth/whoami")).toMatchObject({
    body: { name: "test", browserSession: opened.body.id, scope: "admin" },
  })
})

test("the cookie is bound to the host and to https where the public URL is https", async () => {
  const server = await start({ publicUrl: "https://hooks.example.com" })
  const browser = new Browser(server)
  const origin = "https://hooks.example.com"
  const opened = await browser.signIn({ key: server.key }, { origin })
  expect(opened.headers.getSetCookie()[0]).toMatch(/^__Host-posthorn-dashboard=phs_\w+;.*; Secure$/)
  expect(await browser.call("GET", "/app", { headers: { origin } })).toMatchObject({ status: 200 })
})

test("a cookie on a request of another origin does not count", async () => {
  const server = await start()
  const browser = new Browser(server)
  await browser.signIn({ key: server.key })
  const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join("; ")
  const headers: { [name: string]: string }[] = [
    // A form, an image or a link cannot set the header.
    { cookie },
    { cookie, "posthorn-session": "dashboard", origin: "https://evil.example" },
    { cookie, "posthorn-session": "dashboard", origin: "null" },
    { cookie, "posthorn-session": "dashboard", "sec-fetch-site": "same-site" },
    { cookie, "posthorn-session": "dashboard", "sec-fetch-site": "cross-site", origin: server.url },
    { cookie, "posthorn-session": "portal" },
    { cookie, "posthorn-session": "other" },
  ]
  for (const given of headers) {
    expect(await server.call("GET", "/app", { key: null, headers: given })).toMatchObject({ status: 401 })
    const body = { name: "X" }
    expect(await server.call("POST", "/app", { key: null, headers: given, body })).toMatchObject({
      status: 401,
    })
  }
})

test("another origin cannot sign a browser in", async () => {
  const server = await start()
  const refused = { status: 403, body: { code: "other_origin" } }
  const browser = new Browser(server)
  expect(await browser.signIn({ key: server.key }, { origin: "https://evil.example" })).toMatchObject(refused)
  const body = { key: server.key }
  expect(await server.call("POST", "/auth/session", { key: null, body })).toMatchObject(refused)
})

test("a login link opens one session, also when two browsers race for it", async () => {
  const server = await start()
  const code = await server.posthorn.sessions.createCode(OPERATOR)
  const browsers = Array.from({ length: 5 }, () => new Browser(server))
  const opened = await Promise.all(browsers.map((one) => one.signIn({ code })))
  expect(opened.map(({ status }) => status).sort()).toEqual([201, 401, 401, 401, 401])
  expect(opened.find(({ status }) => status === 401)!.body).toEqual({
    code: "authentication_failed",
    detail: "this link was used already: ask for a new one",
  })
})

test("a dashboard's link signs in with the rights of its key, or only reads", async () => {
  const server = await start()
  const link = async (body: object) => {
    const { url } = (await server.call("POST", "/auth/dashboard-link", { body })).body
    expect(url).toContain(`${server.url}/#code=`)
    const browser = new Browser(server)
    await browser.signIn({ code: new URL(url).hash.slice("#code=".length) })
    return browser
  }
  const [writer, reader] = [await link({}), await link({ readOnly: true })]
  expect(await writer.call("POST", "/app", { body: { name: "X" } })).toMatchObject({ status: 201 })
  expect(await reader.call("GET", "/app")).toMatchObject({ status: 200 })
  expect(await reader.call("POST", "/app", { body: { name: "X" } })).toMatchObject({ status: 403 })
  expect(await reader.call("POST", "/auth/dashboard-link", { body: {} })).toMatchObject({ status: 403 })
})

test("an expired, a wrong and a mutilated link say so", async () => {
  const clock = new TestClock()
  const server = await start({ clock })
  const browser = new Browser(server)
  const code = await server.posthorn.sessions.createCode(OPERATOR)
  const wrong = `${code.slice(0, -1)}${code.endsWith("a") ? "b" : "a"}`
  for (const one of [wrong, code.slice(0, -1), "x"])
    expect(await browser.signIn({ code: one })).toMatchObject({
      status: 401,
      body: { detail: "this link is not a login link of this server: ask for a new one" },
    })
  clock.advance(HOUR_MS)
  expect(await browser.signIn({ code })).toMatchObject({
    status: 401,
    body: { detail: "this link has expired: ask for a new one" },
  })
  expect(await browser.signIn({})).toMatchObject({ status: 422 })
  expect(await browser.signIn({ code, key: server.key })).toMatchObject({ status: 422 })
  expect(await browser.signIn({ key: "nothing" })).toMatchObject({ status: 401 })
})

test("a session ends after 12 hours without a request, and after 7 days", async () => {
  const clock = new TestClock()
  const server = await start({ clock })
  const [busy, idle] = [new Browser(server), new Browser(server)]
  await busy.signIn({ key: server.key })
  await idle.signIn({ key: server.key })
  for (let hours = 0; hours < 7 * 24; hours += 8) {
    expect(await busy.call("GET", "/app")).toMatchObject({ status: 200 })
    clock.advance(8 * HOUR_MS - 1)
    if (hours === 8) expect(await idle.call("GET", "/app")).toMatchObject({ status: 401 })
  }
  clock.advance(21)
  expect(await busy.call("GET", "/app")).toMatchObject({
    status: 401,
    body: { detail: "The token has expired" },
  })
})

test("a session ends with its key, at once", async () => {
  const clock = new TestClock()
  const server = await start({ clock })
  const create = (input: object) =>
    server.call("POST", "/key", { body: { name: "second", scope: "admin", ...input } })
  const { body: revoked } = await create({})
  const { body: expiring } = await create({ expiresAt: new Date(clock.wallNow() + DAY_MS) })
  const [first, second] = [new Browser(server), new Browser(server)]
  await first.signIn({ key: revoked.token })
  await second.signIn({ key: expiring.token })
  expect(await first.call("GET", "/app")).toMatchObject({ status: 200 })
  await server.call("DELETE", `/key/${revoked.id}`)
  expect(await first.call("GET", "/app")).toMatchObject({ status: 401 })
  clock.advance(DAY_MS / 3)
  expect(await second.call("GET", "/app")).toMatchObject({ status: 200 })
  clock.advance(DAY_MS / 3)
  expect(await second.call("GET", "/app")).toMatchObject({ status: 200 })
  clock.advance(DAY_MS / 3)
  expect(await second.call("GET", "/app")).toMatchObject({ status: 401 })
})

test("a logout ends the session and removes the cookie", async () => {
  const server = await start()
  const { body: reader } = await server.call("POST", "/key", { body: { name: "eyes", scope: "read" } })
  for (const key of [server.key, reader.token]) {
    const browser = new Browser(server)
    await browser.signIn({ key })
    const kept = new Map(browser.cookies)
    expect(await browser.call("POST", "/auth/logout")).toMatchObject({ status: 204 })
    expect(browser.cookies.size).toBe(0)
    for (const [name, value] of kept) browser.cookies.set(name, value)
    expect(await browser.call("GET", "/app")).toMatchObject({
      status: 401,
      body: { detail: "The token was revoked" },
    })
  }
  // The key itself is as it was.
  expect(await server.call("GET", "/app")).toMatchObject({ status: 200 })
})

test("a session has the rights of its key and no more", async () => {
  const server = await start()
  const make = async (input: object) =>
    (await server.call("POST", "/key", { body: { name: "key", ...input } })).body.token
  const reader = new Browser(server)
  await reader.signIn({ key: await make({ scope: "read" }) })
  expect(await reader.call("GET", "/app")).toMatchObject({ status: 200 })
  expect(await reader.call("POST", "/app", { body: { name: "X" } })).toMatchObject({ status: 403 })
  const customer = new Browser(server, "portal")
  const opened = await customer.signIn({ key: await make({ scope: "application", appId: "acme" }) })
  expect(opened.body).toMatchObject({ page: "portal" })
  expect(await customer.call("GET", "/app/acme/endpoint")).toMatchObject({ status: 200 })
  expect(await customer.call("GET", "/app/globex/endpoint")).toMatchObject({ status: 404 })
  expect(await customer.call("GET", "/app")).toMatchObject({ status: 403 })
  const agent = new Browser(server)
  const key = await make({ scope: "agent", appId: "acme" })
  expect(await agent.signIn({ key })).toMatchObject({ status: 403 })
})

test("a portal's link opens one session with the capabilities that were asked for", async () => {
  const server = await start()
  const body = { capabilities: ["ViewBase"], sessionId: "visit-1" }
  const { url, token } = (await server.call("POST", "/auth/app-portal-access/acme", { body })).body
  expect(url).not.toContain(token)
  const code = new URL(url).hash.slice("#code=".length)
  const browser = new Browser(server, "portal")
  expect(await browser.signIn({ code })).toMatchObject({
    status: 201,
    body: { page: "portal", capabilities: ["ViewBase"], sessionId: "visit-1" },
  })
  expect(await browser.signIn({ code })).toMatchObject({ status: 401 })
  expect(await browser.call("GET", "/app/acme/endpoint")).toMatchObject({ status: 200 })
  const endpoint = { url: "https://example.com" }
  expect(await browser.call("POST", "/app/acme/endpoint", { body: endpoint })).toMatchObject({ status: 403 })
  const other = { sessionIds: ["visit-2"] }
  await server.call("POST", "/auth/app/acme/expire-all", { body: other })
  expect(await browser.call("GET", "/app/acme/endpoint")).toMatchObject({ status: 200 })
  await server.call("POST", "/auth/app/acme/expire-all", { body: { sessionIds: ["visit-1"] } })
  expect(await browser.call("GET", "/app/acme/endpoint")).toMatchObject({ status: 401 })
})

test("an embedded portal gets its token in the response, and no cookie", async () => {
  const server = await start()
  const { url } = (await server.call("POST", "/auth/app-portal-access/acme", { body: {} })).body
  const code = new URL(url).hash.slice("#code=".length)
  const body = { code, cookie: false }
  const opened = await server.call("POST", "/auth/session", { key: null, body })
  expect(opened.headers.getSetCookie()).toEqual([])
  expect(opened.headers.get("cache-control")).toBe("no-store")
  const key = opened.body.token
  expect(await server.call("GET", "/app/acme/endpoint", { key })).toMatchObject({ status: 200 })
  expect(
    await server.call("POST", "/auth/session", { key: null, body: { key, cookie: false } }),
  ).toMatchObject({
    status: 403,
  })
  // The browser may have a cookie of another session of the portal.
  const ended = await server.call("POST", "/auth/logout", { key })
  expect([ended.status, ended.headers.getSetCookie()]).toEqual([204, []])
})

test("sessions are listed and revoked by the organization alone", async () => {
  const server = await start()
  const [browser, customer] = [new Browser(server), new Browser(server, "portal")]
  const { body: mine } = await browser.signIn({ key: server.key })
  const { url } = (await server.call("POST", "/auth/app-portal-access/acme", { body: {} })).body
  const { body: theirs } = await customer.signIn({ code: new URL(url).hash.slice("#code=".length) })
  const listed = await server.call("GET", "/session")
  expect(listed.body.data.map(({ id }: { id: string }) => id).sort()).toEqual([mine.id, theirs.id].sort())
  expect(listed.text).not.toContain("phs_")
  expect((await server.call("GET", "/session?app_id=acme")).body.data).toMatchObject([
    { id: theirs.id, page: "portal", name: "portal" },
  ])
  expect(await customer.call("GET", "/session")).toMatchObject({ status: 403 })
  expect(await server.call("DELETE", `/session/${mine.id}`)).toMatchObject({ status: 204 })
  expect(await browser.call("GET", "/app")).toMatchObject({ status: 401 })
  expect(await server.call("DELETE", "/session/nothing")).toMatchObject({ status: 404 })
})

test("the store has no token of a session and no code of a link", async () => {
  const server = await start()
  const code = await server.posthorn.sessions.createCode(OPERATOR)
  const { store } = server.posthorn.context
  const entry = await store.getEntry("login-code", null, code.split("_")[1]!, Date.now())
  expect(JSON.stringify(entry)).not.toContain(code.split("_")[2])
  const browser = new Browser(server)
  const { body } = await browser.signIn({ code })
  const session = await store.getEntry("session", null, body.id, Date.now())
  expect(JSON.stringify(session)).not.toContain(browser.cookies.get("posthorn-dashboard")!.split("_")[2])
})

test("an open stream of events does not keep a session that makes no request", async () => {
  const clock = new TestClock()
  const server = await start({ clock })
  const { token } = await server.posthorn.sessions.open(OPERATOR)
  const reader = await EventReader.open(server.url, { query: "", key: token })
  clock.advance(6 * HOUR_MS)
  await reader.until(() => reader.heartbeats > 0)
  clock.advance(6 * HOUR_MS)
  await reader.closed
})

/** From a page of this origin. `fetch` sets the Host header itself. */
async function signInFrom(server: ApiServer, origin: string) {
  const { statusCode: status, body } = await server.app.inject({
    method: "POST",
    url: "/api/v1/auth/session",
    headers: { origin, host: new URL(origin).host, "posthorn-session": "dashboard" },
    payload: { key: server.key },
  })
  return { status, body: JSON.parse(body) }
}

test("a sign-in over plain HTTP is refused where the public URL is https, except on loopback", async () => {
  const server = await start({ publicUrl: "https://hooks.example.com" })
  const { status, body } = await signInFrom(server, "http://hooks.example.com")
  expect({ status, detail: body.detail }).toEqual({
    status: 403,
    detail: "browsers sign in over https alone: open https://hooks.example.com",
  })
  expect(await signInFrom(server, "https://hooks.example.com")).toMatchObject({ status: 201 })
  expect(await signInFrom(server, "http://localhost:8071")).toMatchObject({ status: 201 })
})

test("a cookie that can be read on the way is a warning in the log", async () => {
  const plain = "over plain HTTP"
  const unmarked = "not marked Secure"
  for (const [origin, publicUrl, warning] of [
    ["http://posthorn.internal:8071", null, plain],
    ["http://192.168.1.7:8071", "http://192.168.1.7:8071", plain],
    ["https://hooks.example.com", null, unmarked],
    ["https://hooks.example.com", "https://hooks.example.com", null],
    ["http://localhost:8071", null, null],
    ["http://127.0.0.1:8071", null, null],
    ["http://[::1]:8071", null, null],
  ] as const) {
    const lines = new LogLines()
    const server = await start({ publicUrl, logger: lines.logger })
    expect(await signInFrom(server, origin)).toMatchObject({ status: 201 })
    const warnings = lines.about("a browser signed in").map(({ msg }) => msg)
    expect(warnings, origin).toEqual(warning === null ? [] : [expect.stringContaining(warning)])
  }
})

test("a key opens at most 100 sessions an hour, and links and other keys are not counted", async () => {
  const clock = new TestClock()
  const server = await start({ clock })
  const open = (body: object) =>
    server.call("POST", "/auth/session", { key: null, body: { ...body, cookie: false } })
  const access = await server.call("POST", "/auth/app-portal-access/acme", {
    body: { capabilities: ["ViewBase"] },
  })
  const { token, url } = access.body
  for (let n = 0; n < 100; n++) expect((await open({ key: token })).status).toBe(201)
  const refused = await open({ key: token })
  expect(refused).toMatchObject({ status: 429, body: { code: "too_many_sessions" } })
  expect(refused.headers.get("retry-after")).toBe("3600")
  expect(await open({ code: url.split("#code=")[1] })).toMatchObject({ status: 201 })
  expect(await open({ key: server.key })).toMatchObject({ status: 201 })
  clock.advance(HOUR_MS)
  expect(await open({ key: token })).toMatchObject({ status: 201 })
})

/** Access for the owner of one application, and who a key is. */
import { SignJWT } from "jose"
import { AppPortalCapability } from "svix"
import { expect, test } from "vitest"
import { tokenReader } from "../../../src/api/jwt.ts"
import { systemClock } from "../../../src/core/clock.ts"
import { DEFAULT_ORG } from "../../../src/core/org.ts"
import { TestClock } from "../../support/clock.ts"
import { refusal, svixFor } from "../support/sdk.ts"
import { ApiServer, type ApiServerOptions } from "../support/server.ts"

const DAY_MS = 86_400_000
const endpoint = { url: "https://example.com/hook", uid: "hook" }

async function start(options: ApiServerOptions = {}) {
  const server = await ApiServer.start(options)
  const svix = svixFor(server)
  const acme = await svix.application.create({ name: "Acme", uid: "acme" })
  await svix.endpoint.create("acme", endpoint)
  await svix.application.create({ name: "Globex", uid: "globex" })
  const portal = async (input = {}) =>
    svixFor(server, (await svix.authentication.appPortalAccess("acme", input)).token)
  return { server, svix, acme, portal }
}

test("a portal's token opens its application and no other", async () => {
  const { server, svix, acme } = await start()
  const { url, token } = await svix.authentication.appPortalAccess("acme")
  expect(url).toMatch(/#code=phl_\w+$/)
  expect(url).toContain(`${server.url}/portal#`)
  const own = svixFor(server, token)
  expect(await own.application.get("acme")).toMatchObject({ id: acme.id })
  expect(await own.endpoint.create("acme", { url: endpoint.url })).toMatchObject({ uid: null })
  expect((await own.endpoint.getSecret("acme", "hook")).key).toMatch(/^whsec_/)
  expect(await refusal(own.application.get("globex"))).toMatchObject({ status: 404 })
  expect(await refusal(own.application.list())).toMatchObject({ status: 403 })
  expect(await refusal(own.authentication.appPortalAccess("acme"))).toMatchObject({ status: 403 })
  expect(await refusal(svix.authentication.appPortalAccess("nobody"))).toMatchObject({ status: 404 })
})

test("the url is on the server's public address, when it has one", async () => {
  const { svix } = await start({ publicUrl: "https://hooks.example.com" })
  const { url } = await svix.authentication.appPortalAccess("acme")
  expect(url).toMatch(/^https:\/\/hooks\.example\.com\/portal#code=phl_/)
})

test("an application that is not there is made, if the request brings it", async () => {
  const { svix } = await start()
  const access = (uid: string | null) =>
    svix.authentication.appPortalAccess("initech", { application: { name: "Initech", uid } })
  expect(await refusal(access("other"))).toMatchObject({
    status: 422,
    body: { detail: [{ loc: ["body", "application", "uid"] }] },
  })
  await access("initech")
  await access("initech")
  expect(await svix.application.get("initech")).toMatchObject({ name: "Initech" })
})

test("capabilities say what it may do; one that only reads changes nothing", async () => {
  const { portal } = await start()
  const reader = await portal({ readOnly: true })
  const manager = await portal({
    capabilities: [AppPortalCapability.ViewBase, AppPortalCapability.ManageEndpoint],
  })
  const looker = await portal({ capabilities: [AppPortalCapability.ViewEndpointSecret] })
  const both = await portal({
    readOnly: true,
    capabilities: [AppPortalCapability.ViewEndpointSecret, AppPortalCapability.ManageEndpoint],
  })
  for (const one of [reader, manager, looker, both])
    expect((await one.endpoint.list("acme")).data).toHaveLength(1)
  const patch = { description: "mine" }
  for (const one of [reader, looker, both]) {
    expect(await refusal(one.endpoint.patch("acme", "hook", patch))).toMatchObject({ status: 403 })
    expect(await refusal(one.endpoint.delete("acme", "hook"))).toMatchObject({ status: 403 })
  }
  expect(await refusal(reader.endpoint.getSecret("acme", "hook"))).toMatchObject({ status: 403 })
  for (const one of [looker, both, manager])
    expect(await one.endpoint.getSecret("acme", "hook")).toHaveProperty("key")
  expect(await manager.endpoint.patch("acme", "hook", patch)).toMatchObject(patch)
})

test("how its endpoints are tried is not for the portal to say, but for the organization", async () => {
  const { server, svix } = await start()
  const { token: key } = await svix.authentication.appPortalAccess("acme")
  const { url } = endpoint
  for (const [field, value] of Object.entries({ retry: "relay", concurrency: 2, ordered: true }))
    for (const [method, path] of [
      ["POST", "/app/acme/endpoint"],
      ["PUT", "/app/acme/endpoint/hook"],
      ["PATCH", "/app/acme/endpoint/hook"],
    ] as const) {
      const body = { url, uid: method === "POST" ? `by-${field}` : "hook", [field]: value }
      expect(await server.call(method, path, { key, body })).toMatchObject({
        status: 403,
        body: { detail: `only a key of the whole organization can set ${field}` },
      })
      expect(await server.call(method, path, { body })).toMatchObject({ body: { [field]: value } })
    }
  // A replacement leaves what was not given as the organization has set it.
  expect(
    await server.call("PUT", "/app/acme/endpoint/hook", { key, body: { url, uid: "hook" } }),
  ).toMatchObject({ status: 200, body: { retry: "relay", concurrency: 2, ordered: true } })
})

test("a portal's key is good for a week, or for as long as the request says", async () => {
  const clock = new TestClock()
  const { portal } = await start({ clock })
  const [week, hour] = [await portal(), await portal({ expiry: 3600 })]
  clock.advance(3_600_000)
  expect(await refusal(hour.endpoint.list("acme"))).toMatchObject({ status: 401 })
  clock.advance(7 * DAY_MS - 3_600_001)
  expect((await week.endpoint.list("acme")).data).toHaveLength(1)
  clock.advance(1)
  expect(await refusal(week.endpoint.list("acme"))).toMatchObject({ status: 401 })
})

test("the keys of an application, or of some sessions, can be expired at once or with a delay", async () => {
  const clock = new TestClock()
  const { server, svix, portal } = await start({ clock })
  const anna = await portal({ sessionId: "anna" })
  const others = [await portal({ sessionId: "ben" }), await portal()]
  const globex = svixFor(server, (await svix.authentication.appPortalAccess("globex")).token)
  await svix.authentication.expireAll("acme", { sessionIds: ["anna"] })
  expect(await refusal(anna.application.get("acme"))).toMatchObject({ status: 401 })
  await svix.authentication.expireAll("acme", { sessionIds: [], expiry: 60 })
  clock.advance(59_000)
  for (const one of others) expect(await one.application.get("acme")).toMatchObject({ uid: "acme" })
  clock.advance(1000)
  for (const one of others) expect(await refusal(one.application.get("acme"))).toMatchObject({ status: 401 })
  expect(await globex.application.get("globex")).toMatchObject({ uid: "globex" })
  expect(await svix.application.get("acme")).toMatchObject({ uid: "acme" })
})

test("a portal logs out, also one that only reads; an admin does not", async () => {
  const { svix, portal } = await start()
  for (const input of [{}, { readOnly: true }]) {
    const own = await portal(input)
    await own.authentication.logout()
    expect(await refusal(own.application.get("acme"))).toMatchObject({
      status: 401,
      body: { detail: "The token was revoked" },
    })
  }
  expect(await refusal(svix.authentication.logout())).toMatchObject({ status: 400 })
  expect(await svix.application.get("acme")).toMatchObject({ uid: "acme" })
})

test("older clients ask for the dashboard, without a body", async () => {
  const { server, acme } = await start()
  const { status, body } = await server.call("POST", "/auth/dashboard-access/acme")
  expect(status).toBe(200)
  expect((await server.call("GET", "/auth/whoami", { key: body.token })).body).toMatchObject({
    appId: acme.id,
  })
})

test("a key is told whose it is, and what it may do", async () => {
  const { server, svix, acme } = await start()
  const who = async (key: string) => (await server.call("GET", "/auth/whoami", { key })).body
  expect(await who(server.key)).toEqual({
    envId: DEFAULT_ORG,
    appId: null,
    permissionSource: "RegionalAuthToken",
    sessionId: null,
    keyId: server.key.split("_")[1],
    name: "test",
    browserSession: null,
    scope: "admin",
    capabilities: null,
    featureFlags: null,
  })
  const { token } = await svix.authentication.appPortalAccess("acme", {
    readOnly: true,
    featureFlags: ["beta"],
    sessionId: "anna",
  })
  expect(await who(token)).toMatchObject({
    appId: acme.id,
    sessionId: "anna",
    scope: "application",
    capabilities: ["ViewBase"],
    featureFlags: ["beta"],
  })
})

test("a JWT is told the same, and that it cannot be logged out", async () => {
  const secret = "x".repeat(32)
  const readToken = await tokenReader({ secret, algorithm: "HS256" }, systemClock())
  const { server, acme } = await start({ readToken })
  const key = await new SignJWT({ sub: acme.id, org: DEFAULT_ORG })
    .setProtectedHeader({ alg: "HS256" })
    .setExpirationTime("1h")
    .sign(new TextEncoder().encode(secret))
  expect((await server.call("GET", "/auth/whoami", { key })).body).toMatchObject({
    appId: acme.id,
    permissionSource: "SvixJwt",
    keyId: null,
    featureFlags: [],
  })
  expect(await refusal(svixFor(server, key).authentication.logout())).toMatchObject({
    status: 400,
    body: { detail: expect.stringContaining("JWT") },
  })
})

test("an invalid request is refused with the field", async () => {
  const { server } = await start()
  for (const [body, ...loc] of [
    [{ expiry: 604_801 }, "expiry"],
    [{ expiry: 0 }, "expiry"],
    [{ capabilities: ["Everything"] }, "capabilities", "0"],
    [{ capabilities: [] }, "capabilities"],
    [{ sessionId: "a b" }, "sessionId"],
    [{ featureFlags: ["a b"] }, "featureFlags", "0"],
    [{ theme: "dark" }, "theme"],
  ] as const)
    expect(await server.call("POST", "/auth/app-portal-access/acme", { body })).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ["body", ...loc] }] },
    })
})

/** Access control: keys of every kind on routes of every kind. */
import { expect, test } from "vitest"
import type { Routes } from "../../src/api/context.ts"
import { NoContent } from "../../src/api/schema.ts"
import { createServer } from "../../src/api/server.ts"
import { createLogger } from "../../src/observe/log.ts"
import { openPosthorn } from "../../src/posthorn.ts"
import type { KeyInput } from "../../src/resources/keys.ts"
import { probeRoutes } from "./support/probe.ts"
import { ApiServer } from "./support/server.ts"

async function start() {
  const server = await ApiServer.start({ routes: [probeRoutes()] })
  const { posthorn } = server
  const acme = await posthorn.applications.create({ uid: "acme", name: "Acme" })
  const globex = await posthorn.applications.create({ uid: "globex", name: "Globex" })
  const key = async (input: Partial<KeyInput> & Pick<KeyInput, "scope">) =>
    (await posthorn.keys.create({ name: "test", ...input })).token
  return { server, posthorn, acme, globex, key }
}

const REFUSED = { status: 403, body: { code: "insufficient access", detail: expect.any(String) } }
const UNKNOWN = { status: 401, body: { code: "authentication_failed", detail: expect.any(String) } }

test("an admin's key reaches everything of its tenant, and nothing of another's", async () => {
  const { server, posthorn, acme } = await start()
  for (const [method, path, status] of [
    ["GET", "/app", 200],
    ["GET", `/app/${acme.id}`, 200],
    ["GET", "/app/acme", 200],
    ["HEAD", "/app/acme", 200],
    ["GET", "/app/acme/secret", 204],
    ["POST", "/app/acme/change", 204],
    ["GET", "/type", 204],
  ] as const)
    expect((await server.call(method, path)).status, path).toBe(status)
  const { token } = await posthorn.tenant("org_other").keys.create({ name: "other", scope: "admin" })
  for (const name of ["acme", acme.id])
    expect(await server.call("GET", `/app/${name}`, { key: token })).toMatchObject({
      status: 404,
      body: { code: "not_found", detail: `Entity not found: there is no application "${name}"` },
    })
})

test("an application's key reaches its application by id and uid, and no other exists for it", async () => {
  const { server, acme, globex, key } = await start()
  const own = await key({ scope: "application", appId: "acme" })
  for (const name of ["acme", acme.id]) {
    expect(await server.call("GET", `/app/${name}`, { key: own })).toMatchObject({ status: 200 })
    expect(await server.call("POST", `/app/${name}/change`, { key: own })).toMatchObject({ status: 204 })
  }
  expect(await server.call("GET", "/type", { key: own })).toMatchObject({ status: 204 })
  expect(await server.call("GET", "/app", { key: own })).toMatchObject(REFUSED)
  const answers = await Promise.all(
    ["globex", globex.id, "nobody", "%00", "..%2f"].map((name) =>
      server.call("GET", `/app/${name}`, { key: own }),
    ),
  )
  expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 404, 404])
  expect(answers[0]!.text.replace("globex", "nobody")).toBe(answers[2]!.text)
})

test("a reading key only reads, and sees secrets only if that was said", async () => {
  const { server, key } = await start()
  const all = await key({ scope: "read" })
  const one = await key({ scope: "read", appId: "acme" })
  const secrets = await key({ scope: "read", capabilities: ["ViewBase", "ViewEndpointSecret"] })
  expect(await server.call("GET", "/app", { key: all })).toMatchObject({ status: 200 })
  expect(await server.call("GET", "/app", { key: one })).toMatchObject(REFUSED)
  for (const reader of [all, one]) {
    expect(await server.call("GET", "/app/acme", { key: reader })).toMatchObject({ status: 200 })
    expect(await server.call("POST", "/app/acme/change", { key: reader })).toMatchObject(REFUSED)
    expect(await server.call("GET", "/app/acme/secret", { key: reader })).toMatchObject(REFUSED)
  }
  expect(await server.call("POST", "/app", { key: all, body: { name: "x" } })).toMatchObject(REFUSED)
  expect(await server.call("GET", "/app/globex", { key: one })).toMatchObject({ status: 404 })
  expect(await server.call("GET", "/app/acme/secret", { key: secrets })).toMatchObject({ status: 204 })
})

test("a portal's key may what its capabilities say, and what those include", async () => {
  const { server, key } = await start()
  for (const [capabilities, secret, change] of [
    [["ViewBase"], 403, 403],
    [["ViewBase", "ViewEndpointSecret"], 204, 403],
    [["ViewBase", "ManageEndpointSecret"], 204, 403],
    [["ViewBase", "ManageEndpoint"], 204, 204],
    [null, 204, 204],
  ] as const) {
    const portal = await key({ scope: "application", appId: "acme", capabilities })
    expect((await server.call("GET", "/app/acme/secret", { key: portal })).status).toBe(secret)
    expect((await server.call("POST", "/app/acme/change", { key: portal })).status).toBe(change)
  }
})

test("every capability includes ViewBase: its holder searches, follows and logs out", async () => {
  const server = await ApiServer.start()
  const { applications, keys } = server.posthorn
  await applications.create({ uid: "acme", name: "Acme" })
  const capabilities = ["CreateAttempts"] as const
  const given = { name: "test", scope: "application", appId: "acme", capabilities } as const
  const { token: portal } = await keys.create(given)
  for (const [method, path] of [
    ["GET", "/app/acme/endpoint"],
    ["GET", "/search?q=acme"],
    ["HEAD", "/events"],
  ] as const)
    expect((await server.call(method, path, { key: portal })).status, path).toBe(200)
  expect((await server.call("POST", "/auth/logout", { key: portal })).status).toBe(204)
})

test("no key, one that is nonsense, expired or revoked: 401, before anything of the request is read", async () => {
  const { server, posthorn } = await start()
  const { id, token } = await posthorn.keys.create({ name: "gone", scope: "admin" })
  await posthorn.keys.revoke(id)
  for (const key of [null, "nonsense", "a.b.c", `ph_${"a".repeat(16)}_${"b".repeat(40)}`])
    expect(await server.call("POST", "/app", { key, raw: "{broken" })).toMatchObject({
      ...UNKNOWN,
      body: { detail: expect.stringMatching(/^Invalid token/) },
    })
  expect(await server.call("GET", "/app", { key: token })).toMatchObject({
    ...UNKNOWN,
    body: { detail: "The token was revoked" },
  })
  for (const authorization of ["Basic abc", `Bearer`, `Bearer ${server.key} x`, server.key])
    expect(await server.call("GET", "/app", { key: null, headers: { authorization } })).toMatchObject(UNKNOWN)
  expect(
    await server.call("GET", "/app", { key: null, headers: { authorization: `bearer  ${server.key}` } }),
  ).toMatchObject({ status: 200 })
})

const described = { operationId: "x", summary: "x", response: { 204: NoContent } }
test.each<[string, Routes, RegExp]>([
  [
    "what it needs",
    (app) => void app.get("/x", { schema: described }, async () => undefined),
    /does not declare what it needs: set config.auth/,
  ],
  [
    "whose application",
    (app) => void app.get("/x", { config: { auth: "app" }, schema: described }, async () => undefined),
    /has no :app_id in its path/,
  ],
  [
    "what a portal must be able to",
    (app) => void app.post("/x", { config: { auth: "read" }, schema: described }, async () => undefined),
    /set config.capability/,
  ],
  [
    "what is in its path",
    (app) => void app.get("/x/:id", { config: { auth: "org" }, schema: described }, async () => undefined),
    /describe them in schema.params/,
  ],
  [
    "what it is",
    (app) => void app.get("/x", { config: { auth: "org" } }, async () => undefined),
    /is not described/,
  ],
])("a route that does not say %s does not start", async (_what, routes, problem) => {
  const posthorn = await openPosthorn({ store: "sqlite::memory:", deliver: false, logger: "silent" })
  const settings = { logger: createLogger("silent"), maxPayloadBytes: 1, maxRequests: 1, closeTimeoutMs: 0 }
  const app = createServer(posthorn, { ...settings, routes: [routes] })
  await expect(app.ready()).rejects.toThrow(problem)
  await posthorn.close()
})

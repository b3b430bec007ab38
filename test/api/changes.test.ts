/** The record of changes: each change that was made through the API, once, with its caller. */
import { expect, test } from "vitest"
import { DEFAULT_ORG } from "../../src/core/org.ts"
import type { Change } from "../../src/resources/changes.ts"
import { OPERATOR } from "../../src/resources/sessions.ts"
import type { Entry, Store } from "../../src/store/store.ts"
import { TestClock } from "../support/clock.ts"
import { Browser } from "./support/browser.ts"
import { requestFor } from "./support/naming.ts"
import { ApiServer, type ApiServerOptions } from "./support/server.ts"
import { World } from "./support/world.ts"

const DAY_MS = 86_400_000

const LOGOUT = "v1.authentication.logout"
/** Operations that are no GET and change nothing, and messages and signing in and out. */
const UNRECORDED = [
  "v1.authentication.app-portal-access",
  "v1.authentication.dashboard-access",
  LOGOUT,
  "v1.environment.export",
  "v1.message.create",
  "v1.message.create-batch",
  "v1.message.precheck",
  "v1.retry-policy.preview",
  "v1.session.open",
  "v1.statistics.aggregate-app-stats",
  "v1.statistics.aggregate-event-types",
]

async function start(options: ApiServerOptions = {}) {
  const server = await ApiServer.start(options)
  await server.posthorn.applications.create({ name: "Acme", uid: "acme" })
  return server
}

async function changesOf(server: ApiServer, query = "", key = server.key): Promise<readonly Change[]> {
  const { status, body } = await server.call("GET", `/change${query}`, { key })
  expect(status).toBe(200)
  return body.data
}

/** Does something else before, or in the place of, the writing of a change. */
function overChanges(save: (write: () => Promise<void>) => Promise<void>) {
  return (store: Store): Store => ({
    ...store,
    saveEntryIfUnchanged: (entry: Entry) => {
      const write = () => store.saveEntryIfUnchanged(entry)
      return entry.kind === "change" ? save(write) : write()
    },
  })
}

const URL_OF = "https://user-secret.example.com/hook"

test("a change is recorded with its caller, what was changed and the fields that were given", async () => {
  const server = await start()
  const { id: appId } = await server.posthorn.applications.get("acme")
  const body = { url: URL_OF, uid: "main", disabled: false, metadata: { a: "b" } }
  const created = await server.call("POST", "/app/acme/endpoint", { body })
  expect(created).toMatchObject({ status: 201 })
  const endpoint = created.body
  await server.call("POST", "/app/acme/endpoint/main/pause")
  await server.call("PATCH", "/app/acme/endpoint/main", { body: { rateLimit: 5, uid: null } })
  await server.call("DELETE", `/app/${appId}/endpoint/${endpoint.id}`)
  const keyId = server.key.split("_")[1]
  const same = {
    by: { kind: "key", id: keyId, name: "test", appId: null },
    ...{ appId, endpointId: endpoint.id, subject: endpoint.id },
  }
  const changes = await changesOf(server)
  expect(changes).toMatchObject([
    { ...same, action: "endpoint.delete", detail: null },
    { ...same, action: "endpoint.patch", detail: "rateLimit=5, uid=null" },
    { ...same, action: "endpoint.pause", detail: null },
    { ...same, action: "endpoint.create", detail: "url, uid, disabled=false, metadata" },
  ])
  for (const { id, at } of changes) {
    expect(id).toMatch(/^chg_\w{27}$/)
    expect(Math.abs(new Date(at).getTime() - Date.now())).toBeLessThan(60_000)
  }
  expect(JSON.stringify(changes)).not.toContain("user-secret")
})

test("the caller is a key, a login, a portal or a JWT, by name", async () => {
  const server = await start({
    readToken: async () => ({
      ...{ orgId: DEFAULT_ORG, appId: null, access: "admin", capabilities: null, featureFlags: null },
      ...{ endpointIds: null, keyId: null, browserSession: null, via: "jwt", name: "a JWT" },
    }),
  })
  const { id: appId } = await server.posthorn.applications.get("acme")
  const create = { url: URL_OF }
  const operator = new Browser(server)
  const login = await operator.signIn({ code: await server.posthorn.sessions.createCode(OPERATOR) })
  await operator.call("POST", "/app/acme/endpoint", { body: create })
  const { body: access } = await server.call("POST", "/auth/app-portal-access/acme", { body: {} })
  const customer = new Browser(server, "portal")
  const visit = await customer.signIn({ code: new URL(access.url).hash.slice("#code=".length) })
  await customer.call("POST", "/app/acme/endpoint", { body: create })
  await server.call("POST", "/app/acme/endpoint", { body: create, key: access.token })
  await server.call("POST", "/app/acme/endpoint", { body: create, key: "a.b.c" })
  expect((await changesOf(server)).map(({ by }) => by)).toEqual([
    { kind: "jwt", id: null, name: "a JWT", appId: null },
    { kind: "key", id: access.token.split("_")[1], name: "portal", appId },
    { kind: "portal", id: visit.body.id, name: "portal", appId },
    { kind: "login", id: login.body.id, name: "login link", appId: null },
  ])
})

test("every operation that changes something is recorded once, and no other", {
  timeout: 120_000,
}, async () => {
  const world = await World.start()
  // The tenant that may call operators' operations, too.
  const { key, ids, appId } = await world.fill({ orgId: DEFAULT_ORG, mark: "mombasa", suffix: "default" })
  const { server } = world
  const portal = async () => (await world.keyOf(DEFAULT_ORG, { scope: "application", appId })).token
  const wrong: string[] = []
  const recorded = new Set<string>()
  let before = (await changesOf(server, "?limit=1", key))[0]?.id ?? ""
  for (const operation of world.operations) {
    const { method, path, body } = requestFor(operation, [ids], ids)
    const caller = operation.id === LOGOUT ? await portal() : key
    const { status } = await server.call(method, path, { key: caller, body })
    const changes = (await changesOf(server, "?limit=250", key)).filter(({ id }) => id > before)
    before = changes[0]?.id ?? before
    const changed =
      method !== "GET" && method !== "HEAD" && status < 300 && !UNRECORDED.includes(operation.id)
    const expected = changed ? [operation.id.replace("v1.", "")] : []
    const actions = changes.map(({ action }) => action)
    if (actions.join() !== expected.join())
      wrong.push(`${method} ${path}: ${status}, recorded ${actions}, expected ${expected}`)
    for (const action of actions) recorded.add(action)
  }
  expect(wrong).toEqual([])
  // The others are refused here: a delivery that was cancelled cannot be retried, and such.
  expect(recorded.size).toBeGreaterThan(50)
})

test("calls that are refused, messages, signing in and out, and reading are not recorded", async () => {
  const server = await start()
  const { token: reader } = await server.posthorn.keys.create({ name: "reader", scope: "read" })
  const browser = new Browser(server)
  await browser.signIn({ key: server.key })
  await browser.call("POST", "/auth/logout")
  const spec = { webhooks: { "invoice.paid": { post: { description: "x" } } } }
  for (const [path, body, key, status] of [
    ["/app/nobody/endpoint", { url: URL_OF }, server.key, 404],
    ["/app/acme/endpoint", { url: "nonsense" }, server.key, 422],
    ["/app/acme/endpoint", {}, server.key, 422],
    ["/app/acme/endpoint", { url: URL_OF }, reader, 403],
    ["/app/acme/endpoint", { url: URL_OF }, "nonsense", 401],
    ["/app", { name: "Acme", uid: "acme" }, server.key, 409],
    ["/app/acme/msg", { eventType: "invoice.paid", payload: {} }, server.key, 202],
    ["/app/acme/msg?with_content=false", { eventType: "invoice.paid", payload: {} }, server.key, 202],
    ["/event-type/import/openapi", { spec, dryRun: true }, server.key, 200],
  ] as const)
    expect((await server.call("POST", path, { body, key })).status, path).toBe(status)
  expect(await changesOf(server)).toEqual([])
  await server.call("POST", "/event-type/import/openapi", { body: { spec } })
  expect(await changesOf(server)).toMatchObject([{ action: "event-type.import-openapi", detail: "spec" }])
})

test("a change under an idempotency key is recorded once, also when a lost run is repeated", async () => {
  const clock = new TestClock()
  let isLost = false
  const wrapStore = (store: Store): Store => ({
    ...store,
    // The process dies after the change was recorded and before the response was stored.
    saveEntryIfUnchanged: async (entry) => {
      if (isLost && entry.kind === "answer" && entry.version === 2) throw new Error("the process died")
      await store.saveEntryIfUnchanged(entry)
    },
  })
  const server = await start({ clock, wrapStore })
  const create = (key: string) =>
    server.call("POST", "/app/acme/endpoint", { body: { url: URL_OF }, headers: { "idempotency-key": key } })
  const first = await create("one")
  expect((await create("one")).body.id).toBe(first.body.id)
  clock.advance(1000)
  isLost = true
  const lost = await create("two")
  isLost = false
  clock.advance(10_000)
  expect((await create("two")).body.id).toBe(lost.body.id)
  expect((await changesOf(server)).map(({ subject }) => subject)).toEqual([lost.body.id, first.body.id])
})

test("a record that fails or hangs neither fails nor delays the change", async () => {
  const released = Promise.withResolvers<void>()
  let record: (write: () => Promise<void>) => Promise<void> = async () => {
    throw new Error("the disk is full")
  }
  const server = await start({ wrapStore: overChanges((write) => record(write)) })
  const create = async () => {
    const made = await server.call("POST", "/app/acme/endpoint", { body: { url: URL_OF } })
    expect(made.status).toBe(201)
    return made.body.id
  }
  await create()
  expect(await changesOf(server)).toEqual([])
  record = (write) => released.promise.then(write)
  const slow = await create()
  // The list waits for the changes that this server has made before.
  const listing = changesOf(server)
  released.resolve()
  expect(await listing).toMatchObject([{ subject: slow }])
})

test("a server that stops records the changes that it has made", async () => {
  const released = Promise.withResolvers<void>()
  const entries: Entry[] = []
  const wrapStore = (store: Store): Store => ({
    ...store,
    saveEntryIfUnchanged: async (entry) => {
      if (entry.kind === "change") await released.promise
      await store.saveEntryIfUnchanged(entry)
      entries.push(entry)
    },
  })
  const server = await start({ wrapStore })
  await server.call("POST", "/app", { body: { name: "Globex" } })
  const closed = server.app.close()
  expect(entries.filter(({ kind }) => kind === "change")).toHaveLength(0)
  released.resolve()
  await closed
  expect(entries.filter(({ kind }) => kind === "change")).toHaveLength(1)
})

test("changes are listed by application and endpoint, in pages, and those of a deleted application stay", async () => {
  const server = await start()
  const { id: appId } = await server.posthorn.applications.get("acme")
  await server.call("POST", "/app", { body: { name: "Globex", uid: "globex" } })
  const [{ body: first }] = [
    await server.call("POST", "/app/acme/endpoint", { body: { url: URL_OF, uid: "main" } }),
    await server.call("POST", "/app/globex/endpoint", { body: { url: URL_OF, uid: "main" } }),
  ] as const
  await server.call("POST", "/app/acme/endpoint/main/pause")
  await server.call("PUT", "/app/acme", { body: { name: "Acme", uid: "renamed" } })
  const actions = async (query: string) => (await changesOf(server, query)).map(({ action }) => action)
  const ofEndpoint = ["endpoint.pause", "endpoint.create"]
  expect(await actions(`?endpoint_id=${first.id}`)).toEqual(ofEndpoint)
  expect(await actions(`?endpoint_id=main&app_id=renamed`)).toEqual(ofEndpoint)
  expect(await actions(`?endpoint_id=${first.id}&app_id=${appId}`)).toEqual(ofEndpoint)
  expect(await actions(`?endpoint_id=${first.id}&app_id=globex`)).toEqual([])
  expect(await actions("?app_id=renamed")).toEqual(["application.update", ...ofEndpoint])
  expect(await actions("?app_id=globex")).toEqual(["endpoint.create", "application.create"])
  await server.call("DELETE", "/app/renamed")
  expect(await actions(`?app_id=${appId}`)).toEqual([
    "application.delete",
    "application.update",
    ...ofEndpoint,
  ])
  expect(await actions(`?endpoint_id=${first.id}`)).toEqual(ofEndpoint)
  const page = (await server.call("GET", "/change?limit=4")).body
  expect(page.done).toBe(false)
  const rest = (await server.call("GET", `/change?limit=4&iterator=${page.iterator}`)).body
  expect([...page.data, ...rest.data].map(({ action }: Change) => action)).toEqual([
    ...["application.delete", "application.update", "endpoint.pause"],
    ...["endpoint.create", "endpoint.create", "application.create"],
  ])
  expect(await server.call("GET", "/change?endpoint_id=main")).toMatchObject({ status: 422 })
  expect(await server.call("GET", "/change?app_id=nobody")).toMatchObject({ status: 404 })
})

test("a bulk action is recorded with its filter and its task", async () => {
  const server = await start()
  const { id: appId } = await server.posthorn.applications.get("acme")
  const body = { app_id: "acme", dead_reason: "exhausted", event_types: ["a", "b"] }
  const { body: task } = await server.call("POST", "/dead-letter/retry", { body })
  expect(await changesOf(server)).toMatchObject([
    {
      action: "dead-letter.retry-many",
      ...{ appId, endpointId: null, subject: task.id },
      detail: "app_id=acme, dead_reason=exhausted, event_types=a|b",
    },
  ])
})

test("the change of a delivery names its application and its endpoint", async () => {
  const server = await start()
  const { id: endpointId, appId } = await server.posthorn.endpoints.create("acme", { url: URL_OF })
  await server.posthorn.send("acme", { eventType: "x", payload: {}, deliverAt: Date.now() + DAY_MS })
  const { id } = (await server.posthorn.deliveries.list({ app: "acme" })).data[0]!
  await server.call("POST", `/delivery/${id}/cancel`)
  expect(await changesOf(server, `?endpoint_id=${endpointId}`)).toMatchObject([
    { action: "delivery.cancel", appId, endpointId, subject: id, detail: null },
  ])
})

test("changes are for the organization alone, a reading key included, and for 90 days", async () => {
  const clock = new TestClock()
  const server = await start({ clock })
  await server.call("POST", "/app", { body: { name: "Globex" } })
  const key = async (input: object, org = DEFAULT_ORG) =>
    (await server.posthorn.tenant(org).keys.create({ name: "x", scope: "admin", ...input })).token
  const stranger = await key({}, "org_other")
  expect(await changesOf(server, "", stranger)).toEqual([])
  await server.call("POST", "/app", { body: { name: "Initech" }, key: stranger })
  expect(await changesOf(server, "", stranger)).toMatchObject([{ action: "application.create" }])
  expect(await changesOf(server, "", await key({ scope: "read" }))).toHaveLength(1)
  const customer = await key({ scope: "application", appId: "acme" })
  expect(await server.call("GET", "/change?app_id=acme", { key: customer })).toMatchObject({ status: 403 })
  clock.advance(90 * DAY_MS - 1000)
  expect(await changesOf(server)).toHaveLength(1)
  clock.advance(1000)
  expect(await changesOf(server)).toEqual([])
})

/** Svix's client and a tenant's settings in one file. */
import { expect, test } from "vitest"
import { refusal, svixFor } from "../support/sdk.ts"
import { ApiServer } from "../support/server.ts"

const schemas = { "1": { type: "object" } }
const policy = { delays: [1, 2], maxAttempts: 3 }

async function start() {
  const server = await ApiServer.start()
  const { token } = await server.posthorn.tenant("org_other").keys.create({ name: "x", scope: "admin" })
  return { server, svix: svixFor(server), other: svixFor(server, token), otherKey: token }
}

async function filled() {
  const all = await start()
  const { svix, server } = all
  await svix.eventType.create({
    name: "a",
    description: "A",
    schemas,
    featureFlags: ["beta"],
    groupName: "g",
  })
  await svix.eventType.create({ name: "b", description: "B" })
  await svix.eventType.delete("b")
  await server.posthorn.policies.put("slow", policy)
  return all
}

test("one tenant's export is imported by another, with Svix's client", async () => {
  const { svix, other, server } = await filled()
  const exported = await svix.environment.export()
  expect(exported).toMatchObject({
    version: 1,
    eventTypes: [
      { name: "a", schemas, featureFlags: ["beta"], groupName: "g", archived: false },
      { name: "b", archived: true },
    ],
    settings: { policies: { slow: { maxAttempts: 3 } } },
    connectors: [],
  })
  expect(exported.createdAt).toBeInstanceOf(Date)
  await other.environment.import(exported as never)
  const times = { createdAt: null, updatedAt: null }
  const without = (list: readonly object[]) => list.map((one) => ({ ...one, ...times }))
  const imported = await other.environment.export()
  expect(without(imported.eventTypes)).toEqual(without(exported.eventTypes))
  expect(imported.settings).toEqual(exported.settings)
  expect((await server.posthorn.tenant("org_other").policies.get("slow")).policy).toMatchObject({
    maxAttempts: 3,
  })
})

test("the file can be sent back as it came, and changes nothing then", async () => {
  const { server } = await filled()
  const { text } = await server.call("POST", "/environment/export")
  expect((await server.call("POST", "/environment/import", { raw: text })).status).toBe(204)
  const again = (await server.call("POST", "/environment/export")).body
  expect(again.eventTypes).toEqual(JSON.parse(text).eventTypes)
})

test("an import adds and replaces; what it does not name stays", async () => {
  const { svix } = await filled()
  await svix.environment.import({
    eventTypes: [
      { name: "a", description: "changed" },
      { name: "c", description: "C" },
    ],
  })
  await svix.environment.import({})
  const { data } = await svix.eventType.list({ includeArchived: true })
  expect(data.map(({ name, description }) => [name, description])).toEqual([
    ["a", "changed"],
    ["b", "B"],
    ["c", "C"],
  ])
})

test("an import that is refused leaves everything as it was", async () => {
  const { server } = await start()
  const fresh = { name: "fresh", description: "" }
  for (const [body, ...loc] of [
    [{ eventTypes: [fresh], connectors: [{ name: "slack" }] }, "connectors"],
    [{ eventTypes: [fresh], settings: { customColor: "red" } }, "settings", "customColor"],
    [{ eventTypes: [fresh], settings: { policies: { p: { delays: [-1] } } } }, "settings", "policies", "p"],
    [{ eventTypes: [fresh], settings: { policies: { standard: policy } } }, "name"],
    [{ eventTypes: [fresh, { name: "x" }] }, "eventTypes", "1", "description"],
    [
      { eventTypes: [fresh, { ...fresh, name: "y", schemas: { "1": "x".repeat(300_000) } }] },
      "eventTypes",
      "1",
    ],
    [{ eventTypes: [fresh, fresh] }, "eventTypes", "1", "name"],
    [{ version: 2 }, "version"],
  ] as const) {
    const answer = await server.call("POST", "/environment/import", { body })
    expect(answer.status, answer.text).toBe(422)
    expect(answer.body.detail[0].loc.slice(0, loc.length + 1)).toEqual(["body", ...loc])
  }
  expect((await server.posthorn.eventTypes.list()).data).toEqual([])
  expect(
    (await server.call("POST", "/environment/import", { body: { connectors: [], settings: null } })).status,
  ).toBe(204)
})

test("only keys of the whole tenant export and import", async () => {
  const { server } = await start()
  await server.posthorn.applications.create({ uid: "acme", name: "Acme" })
  const { token } = await server.posthorn.keys.create({ name: "x", scope: "application", appId: "acme" })
  const portal = svixFor(server, token)
  expect(await refusal(portal.environment.export())).toMatchObject({ status: 403 })
  expect(await refusal(portal.environment.import({}))).toMatchObject({ status: 403 })
})

/** Event types over HTTP: with Svix's own client, and beside it. */
import { Ordering } from "svix"
import { expect, test } from "vitest"
import { refusal, svixFor } from "../support/sdk.ts"
import { ApiServer } from "../support/server.ts"

const type = (name: string, more: object = {}) => ({ name, description: `About ${name}`, ...more })
const schemas = { "1": { type: "object", examples: [{ id: 1 }] } }

test("the client creates, reads, replaces, changes, archives and expunges event types", async () => {
  const server = await ApiServer.start()
  const { eventType } = svixFor(server)
  const made = await eventType.create(
    type("invoice.paid", { schemas, featureFlags: ["beta"], groupName: "billing" }),
  )
  expect(made).toMatchObject({
    name: "invoice.paid",
    archived: false,
    deprecated: false,
    schemas,
    featureFlags: ["beta"],
    featureFlag: "beta",
    groupName: "billing",
  })
  expect(made.createdAt).toBeInstanceOf(Date)
  expect(await eventType.get("invoice.paid")).toEqual(made)
  expect(await refusal(eventType.create(type("invoice.paid")))).toMatchObject({
    status: 409,
    body: { code: "event_type_exists" },
  })
  const replaced = await eventType.upsert("invoice.paid", { description: "Paid" })
  expect(replaced).toMatchObject({ description: "Paid", schemas: null, featureFlags: null, groupName: null })
  const patched = await eventType.patch("invoice.paid", { deprecated: true, featureFlags: ["eu", "us"] })
  expect(patched).toMatchObject({ description: "Paid", deprecated: true, featureFlags: ["eu", "us"] })
  expect(await eventType.delete("invoice.paid")).toBeUndefined()
  expect(await eventType.get("invoice.paid")).toMatchObject({ archived: true })
  expect(await eventType.create(type("invoice.paid"))).toMatchObject({ archived: false, deprecated: false })
  await eventType.delete("invoice.paid", { expunge: true })
  expect(await refusal(eventType.get("invoice.paid"))).toMatchObject({
    status: 404,
    body: { code: "not_found" },
  })
  expect(await refusal(eventType.delete("invoice.paid"))).toMatchObject({ status: 404 })
})

test("a broken JSON schema is a 422 that says where", async () => {
  const server = await ApiServer.start()
  const body = type("bad", { schemas: { "1": { readOnly: 15 } } })
  const refused = { status: 422, body: { detail: [{ loc: ["body", "schemas", "1"] }] } }
  expect(await server.call("POST", "/event-type", { body })).toMatchObject(refused)
  const { name: _name, ...rest } = body
  expect(await server.call("PUT", "/event-type/bad", { body: rest })).toMatchObject(refused)
  expect((await server.call("GET", "/event-type/bad")).status).toBe(404)
  const dangling = type("bad", { schemas: { "1": { $ref: "#/$defs/none" } } })
  expect((await server.call("POST", "/event-type", { body: dangling })).body.detail).toMatchObject([
    { loc: ["body", "schemas", "1"], msg: expect.stringContaining("#/$defs/none") },
  ])
})

test("PUT says whether it created", async () => {
  const server = await ApiServer.start()
  const body = { description: "x" }
  expect((await server.call("PUT", "/event-type/a", { body })).status).toBe(201)
  expect((await server.call("PUT", "/event-type/a", { body })).status).toBe(200)
})

test("lists go by name, both ways, with schemas and archived ones when asked for", async () => {
  const server = await ApiServer.start()
  const { eventType } = svixFor(server)
  for (const name of ["d", "a", "c", "b"]) await eventType.create(type(name, { schemas }))
  await eventType.delete("c")
  const names = ({ data }: { data: { name: string }[] }) => data.map(({ name }) => name)
  const first = await eventType.list({ limit: 2 })
  expect([names(first), first.done]).toEqual([["a", "b"], false])
  const second = await eventType.list({ limit: 2, iterator: first.iterator! })
  expect([names(second), second.done]).toEqual([["d"], true])
  const back = await eventType.list({ limit: 2, iterator: second.prevIterator! })
  expect([names(back), back.done]).toEqual([["a", "b"], true])
  expect(names(await eventType.list({ includeArchived: true, order: Ordering.Descending }))).toEqual([
    "d",
    "c",
    "b",
    "a",
  ])
  expect(first.data[0]!.schemas).toBeNull()
  expect((await eventType.list({ withContent: true })).data[0]!.schemas).toEqual(schemas)
})

test("older clients have one flag", async () => {
  const server = await ApiServer.start()
  const { body } = await server.call("POST", "/event-type", { body: type("a", { featureFlag: "beta" }) })
  expect(body).toMatchObject({ featureFlags: ["beta"], featureFlag: "beta" })
  const { body: cleared } = await server.call("PATCH", "/event-type/a", { body: { featureFlag: null } })
  expect(cleared).toMatchObject({ featureFlags: null, featureFlag: null })
})

test("a portal sees what has no flag, and what has one of its own", async () => {
  const server = await ApiServer.start()
  const { posthorn } = server
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  for (const [name, featureFlags] of [
    ["open", null],
    ["beta", ["beta", "x"]],
    ["other", ["other"]],
  ] as const)
    await posthorn.eventTypes.create({ name, description: "", featureFlags })
  const { token } = await posthorn.keys.create({
    name: "portal",
    scope: "application",
    appId: "acme",
    featureFlags: ["beta"],
  })
  const { eventType } = svixFor(server, token)
  expect((await eventType.list()).data.map(({ name }) => name)).toEqual(["beta", "open"])
  expect(await eventType.get("beta")).toMatchObject({ name: "beta" })
  const hidden = await refusal(eventType.get("other"))
  expect(hidden).toMatchObject({ status: 404 })
  const missing = await refusal(eventType.get("nobody"))
  expect(JSON.stringify(hidden).replace("other", "nobody")).toBe(JSON.stringify(missing))
  expect(await refusal(eventType.create(type("mine")))).toMatchObject({ status: 403 })
  expect((await svixFor(server).eventType.list()).data).toHaveLength(3)
})

test("an invalid event type is refused with the field", async () => {
  const server = await ApiServer.start()
  for (const [body, ...loc] of [
    [{ name: "a" }, "body", "description"],
    [type("a b"), "body", "name"],
    [type("a", { schemas: [] }), "body", "schemas"],
    [type("a", { schemas: { "1": "x".repeat(300_000) } }), "body", "schemas"],
    [type("a", { featureFlags: [] }), "body", "featureFlags"],
    [type("a", { colour: "red" }), "body", "colour"],
  ] as const)
    expect(await server.call("POST", "/event-type", { body })).toMatchObject({
      status: 422,
      body: { detail: [{ loc }] },
    })
})

const spec = (webhooks: object) => ({ openapi: "3.1.0", info: { title: "Pets", version: "1" }, webhooks })
const hook = (description: string) => ({ post: { description } })

test("the client imports event types from OpenAPI, as JSON and as YAML", async () => {
  const server = await ApiServer.start()
  const { eventType } = svixFor(server)
  const { data } = await eventType.importOpenapi({
    spec: spec({ "pet.new": hook("new"), "pet.gone": hook("gone") }),
  })
  expect(data).toEqual({ modified: ["pet.new", "pet.gone"] })
  await eventType.delete("pet.gone")
  const specRaw =
    'openapi: 3.1.0\nwebhooks:\n  "pet.new":\n    post: {description: new}\n  pet.gone:\n    post: {description: gone}\n'
  expect((await eventType.importOpenapi({ specRaw })).data.modified).toEqual(["pet.gone"])
  expect((await eventType.list()).data).toMatchObject([
    { name: "pet.gone", description: "gone", archived: false },
    { name: "pet.new", description: "new" },
  ])
})

test("a dry run says what would change, and changes nothing", async () => {
  const server = await ApiServer.start()
  const { eventType } = svixFor(server)
  for (const name of ["kept", "old"]) await eventType.create({ name, description: name })
  const body = { spec: spec({ kept: hook("kept"), fresh: hook("fresh") }), dryRun: true, replaceAll: true }
  const { data } = await eventType.importOpenapi(body)
  expect(data).toEqual({
    modified: [],
    toModify: [
      {
        name: "fresh",
        description: "fresh",
        deprecated: false,
        schemas: null,
        featureFlags: null,
        groupName: null,
      },
    ],
  })
  expect((await server.call("POST", "/event-type/import/openapi", { body })).body.data.to_archive).toEqual([
    "old",
  ])
  expect((await eventType.list()).data.map(({ name }) => name)).toEqual(["kept", "old"])
  const done = await server.call("POST", "/event-type/import/openapi", { body: { ...body, dryRun: false } })
  expect(done.body.data).toEqual({ modified: ["fresh"], archived: ["old"] })
  expect((await eventType.list()).data.map(({ name }) => name)).toEqual(["fresh", "kept"])
})

test("a document that is not fit to be imported leaves everything as it was", async () => {
  const server = await ApiServer.start()
  const post = (body: object) => server.call("POST", "/event-type/import/openapi", { body })
  for (const body of [{}, { spec: null }, { spec: {}, specRaw: "{}" }])
    expect(await post(body)).toMatchObject({ status: 400, body: { code: "generic_error" } })
  const long = { post: { description: "x".repeat(5000) } }
  for (const [body, ...loc] of [
    [{ spec: { openapi: "3.1.0" } }, "body", "spec"],
    [{ specRaw: "- nothing" }, "body", "specRaw"],
    [{ specRaw: "[".repeat(50_000) }, "body", "specRaw"],
    [{ spec: spec({ good: hook("good"), bad: long }) }, "body", "spec", "webhooks", "bad", "description"],
    [{ spec: spec({ good: hook("good"), "b d": hook("") }) }, "body", "spec", "webhooks", "b d", "name"],
  ] as const)
    expect(await post(body)).toMatchObject({ status: 422, body: { detail: [{ loc }] } })
  expect((await server.posthorn.eventTypes.list()).data).toEqual([])
})

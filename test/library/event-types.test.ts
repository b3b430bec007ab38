import { expect, test } from "vitest"
import { seededIds } from "../../src/core/seeded-ids.ts"
import { Harness } from "../support/harness.ts"

test("a broken JSON schema is refused, with its version and what is wrong in it", async () => {
  const { eventTypes } = (await Harness.start()).posthorn
  const create = (schema: unknown) =>
    eventTypes.create({ name: "a", description: "", schemas: { "1": {}, "2": schema } })
  for (const broken of [
    { readOnly: 15 },
    { type: "objekt" },
    { properties: { n: { minimum: "1" } } },
    { properties: { a: { $ref: "#/$defs/b" } }, $defs: { a: {} } },
    { $ref: "#nowhere" },
    null,
    [],
    7,
  ])
    await expect(create(broken)).rejects.toMatchObject({
      code: "invalid_input",
      field: "schemas.2",
      message: expect.stringContaining("is not a JSON schema"),
    })
  await expect(eventTypes.put("a", { description: "", schemas: { "1": { type: 1 } } })).rejects.toThrow(
    "schemas.1",
  )
  await expect(create({ items: { $ref: "#/$defs/b" } })).rejects.toThrow('at its $ref "#/$defs/b"')
  const good = [
    true,
    { properties: { a: { $ref: "#/$defs/b~1c%20d" }, b: { $ref: "#" } }, $defs: { "b/c d": {} } },
    {
      items: { $ref: "#here" },
      $defs: { a: { $anchor: "here" }, b: { $ref: "#there" }, c: { $id: "#there" } },
    },
    { $defs: { a: { $id: "https://example.com/a", $ref: "#/$defs/b", $defs: { b: {} } } } },
    { default: { $ref: "#/nowhere" }, properties: { $ref: { type: "string" } } },
    { type: "object", nullable: true, "x-own": 1, $ref: "https://example.com/elsewhere.json" },
    // Draft 7 and 2020-12 differ in what they call a tuple.
    { type: "array", items: [{ type: "string" }] },
    { type: "array", prefixItems: [{ type: "string" }], items: false },
    { $schema: "http://json-schema.org/draft-04/schema#", minimum: 1, exclusiveMinimum: true },
    { $schema: "https://json-schema.org/draft/2020-12/schema", $defs: { n: { pattern: "(?i)a" } } },
  ]
  for (const [i, schema] of good.entries())
    await eventTypes.create({ name: `good-${i}`, description: "", schemas: { "1": schema } })
  await expect(eventTypes.update("good-0", { schemas: { "1": { readOnly: 15 } } })).rejects.toThrow(
    "schemas.1",
  )
})

test("a JSON schema that nests deeper than 128 levels, or without end, is refused", async () => {
  const { eventTypes } = (await Harness.start()).posthorn
  const nested = (levels: number): object => (levels === 1 ? {} : { not: nested(levels - 1) })
  const create = (schema: object) =>
    eventTypes.create({ name: "deep", description: "", schemas: { "1": schema } })
  const cyclic: { not?: object } = {}
  cyclic.not = cyclic
  for (const schema of [nested(128), nested(5000), cyclic])
    await expect(create(schema)).rejects.toMatchObject({ code: "invalid_input", field: "schemas" })
  await create(nested(127))
})

test("event types are created, read, changed, archived and removed", async () => {
  const { posthorn, clock } = await Harness.start()
  const { eventTypes } = posthorn
  const schemas = { "1": { type: "object" } }
  const made = await eventTypes.create({ name: "invoice.paid", description: "An invoice was paid", schemas })
  expect(made).toMatchObject({ name: "invoice.paid", archived: false, schemas, featureFlags: null })
  clock.advance(1000)
  const changed = await eventTypes.update("invoice.paid", { deprecated: true, groupName: "billing" })
  expect(changed).toMatchObject({
    description: "An invoice was paid",
    deprecated: true,
    groupName: "billing",
  })
  expect(changed.updatedAt.getTime() - changed.createdAt.getTime()).toBe(1000)
  expect(await eventTypes.get("invoice.paid")).toEqual(changed)
  const again = { name: "invoice.paid", description: "again" }
  await expect(eventTypes.create(again)).rejects.toMatchObject({ code: "conflict", field: "name" })
  await eventTypes.delete("invoice.paid")
  expect((await eventTypes.list()).data).toEqual([])
  expect((await eventTypes.list({ includeArchived: true })).data).toMatchObject([{ archived: true }])
  expect(await eventTypes.create(again)).toMatchObject({ archived: false, description: "again" })
  await eventTypes.delete("invoice.paid", { expunge: true })
  await expect(eventTypes.get("invoice.paid")).rejects.toMatchObject({ code: "not_found" })
})

test("put creates what is not there and replaces what is", async () => {
  const { posthorn } = await Harness.start()
  const { eventTypes } = posthorn
  const first = await eventTypes.put("a.b", { description: "one", featureFlags: ["beta"] })
  const second = await eventTypes.put("a.b", { description: "two" })
  expect([first.created, second.created]).toEqual([true, false])
  expect(second.type).toMatchObject({ description: "two", featureFlags: null })
})

test("lists go by name, in both directions, past those that are left out", async () => {
  const { posthorn } = await Harness.start()
  const { eventTypes } = posthorn
  const names = ["-dash", "a", "b", "c", "d", "e"]
  for (const name of names) await eventTypes.create({ name, description: name })
  await eventTypes.delete("b")
  const first = await eventTypes.list({ limit: 2 })
  expect([first.data.map(({ name }) => name), first.done]).toEqual([["-dash", "a"], false])
  const second = await eventTypes.list({ limit: 2, cursor: first.cursor })
  expect(second.data.map(({ name }) => name)).toEqual(["c", "d"])
  const last = await eventTypes.list({ limit: 2, cursor: second.cursor })
  expect([last.data.map(({ name }) => name), last.done]).toEqual([["e"], true])
  const back = await eventTypes.list({ limit: 2, cursor: second.previous })
  expect([back.data.map(({ name }) => name), back.done]).toEqual([["-dash", "a"], true])
  const fromFirst = await eventTypes.list({ limit: 1, cursor: (await eventTypes.list({ limit: 1 })).cursor })
  expect(fromFirst.data.map(({ name }) => name)).toEqual(["a"])
  const seen = await eventTypes.list({ visible: ({ name }) => name > "c" })
  expect(seen.data.map(({ name }) => name)).toEqual(["d", "e"])
})

test("an invalid event type is refused with the name of the field", async () => {
  const { posthorn } = await Harness.start()
  const { eventTypes } = posthorn
  const bad = (input: object, field: string) =>
    expect(eventTypes.create({ name: "a", description: "", ...input } as never)).rejects.toMatchObject({
      field,
    })
  await bad({ name: "a b" }, "name")
  await bad({ description: 7 }, "description")
  await bad({ schemas: [] }, "schemas")
  await bad({ schemas: { "1": "x".repeat(300_000) } }, "schemas")
  await bad({ featureFlags: [] }, "featureFlags")
  await bad({ colour: "red" }, "colour")
})

test("a request that is run again after a crash finds the event type that it made", async () => {
  const { posthorn } = await Harness.start()
  const again = () => posthorn.tenant(posthorn.context.orgId, { ids: seededIds("seed", 0) }).eventTypes
  const made = await again().create({ name: "a", description: "A" })
  expect(await again().create({ name: "a", description: "A" })).toEqual(made)
  await expect(posthorn.eventTypes.create({ name: "a", description: "A" })).rejects.toMatchObject({
    code: "conflict",
  })
})

test("of many that are put at once, only those that say something new are written", async () => {
  const { posthorn, clock } = await Harness.start()
  const { eventTypes } = posthorn
  const schemas = { "1": { type: "object", properties: { id: { type: "string" } } } }
  const types = [
    { name: "a", description: "A", schemas },
    { name: "b", description: "B", featureFlags: ["beta"] },
  ]
  expect((await eventTypes.changes(types)).map(({ name }) => name)).toEqual(["a", "b"])
  expect((await eventTypes.list()).data).toEqual([])
  expect(await eventTypes.putAll(types)).toEqual(["a", "b"])
  const { createdAt } = await eventTypes.get("a")
  clock.advance(1000)
  await eventTypes.delete("b")
  expect(await eventTypes.putAll(types)).toEqual(["b"])
  expect(await eventTypes.get("a")).toMatchObject({ updatedAt: createdAt })
  expect(await eventTypes.get("b")).toMatchObject({ archived: false, createdAt })
})

test("of many, one that is not fit to be keeps all from being written, and is named", async () => {
  const { posthorn } = await Harness.start()
  const { eventTypes } = posthorn
  const good = { name: "good", description: "" }
  const bad = (second: object, field: string) =>
    expect(eventTypes.putAll([good, second as never])).rejects.toMatchObject({ field })
  await bad({ name: "b" }, "eventTypes[1].description")
  await bad({ name: "a b", description: "" }, "eventTypes[1].name")
  await bad({ name: "b", description: "", groupName: "a b" }, "eventTypes[1].groupName")
  await bad(good, "eventTypes[1].name")
  expect((await eventTypes.list()).data).toEqual([])
})

import { expect, test } from "vitest"
import { eventTypesOf, readSpec } from "./event-types.ts"

const body = (schema: unknown, more: object = {}) => ({
  content: { "application/json": { schema, ...more } },
})
const webhook = (operation: object) => ({ webhooks: { "pet.new": { post: operation } } })
const read = (spec: unknown) => eventTypesOf(spec, "spec")
const schemaOf = (spec: unknown) => read(spec)[0]!.schemas!["1"]

test("each webhook is an event type, by its name, with what its operation says", () => {
  const spec = {
    openapi: "3.1.0",
    webhooks: {
      "pet.new": {
        post: {
          operationId: "whatever",
          description: "A new pet",
          deprecated: true,
          "x-svix-feature-flags": ["beta", "eu"],
          "x-svix-group-name": "pets",
          requestBody: body({ type: "object" }),
        },
      },
      "pet.gone": { post: { summary: "A pet left", "x-svix-feature-flag": "beta" } },
    },
  }
  expect(read(spec)).toEqual([
    {
      name: "pet.new",
      description: "A new pet",
      deprecated: true,
      schemas: { "1": { type: "object" } },
      featureFlags: ["beta", "eu"],
      groupName: "pets",
    },
    {
      name: "pet.gone",
      description: "A pet left",
      deprecated: false,
      schemas: null,
      featureFlags: ["beta"],
      groupName: null,
    },
  ])
})

test("before OpenAPI 3.1 they are under x-webhooks; of two by one name, the later form counts", () => {
  const older = { "x-webhooks": { a: { post: { description: "old" } }, b: { post: { description: "b" } } } }
  expect(read(older).map(({ name }) => name)).toEqual(["a", "b"])
  const both = read({ ...older, webhooks: { a: { post: { description: "new" } } } })
  expect(both.map(({ name, description }) => [name, description])).toEqual([
    ["a", "new"],
    ["b", "b"],
  ])
})

test("the description is looked for from the operation outwards", () => {
  const requestBody = { description: "of the body" }
  const [ofBody] = read({ webhooks: { a: { post: { requestBody } } } })
  const [ofItem] = read({ webhooks: { a: { summary: "of the item", post: { requestBody } } } })
  const [none] = read({ webhooks: { a: { put: {} } } })
  expect([ofBody!.description, ofItem!.description, none!.description]).toEqual([
    "of the body",
    "of the item",
    "",
  ])
})

test("examples become the schema's own, unless it has some", () => {
  const examples = { one: { value: { n: 1 } }, two: { $ref: "#/components/examples/Two" } }
  const components = { examples: { Two: { value: { n: 2 } } } }
  expect(
    schemaOf({ ...webhook({ requestBody: body({ type: "object" }, { examples }) }), components }),
  ).toEqual({ type: "object", examples: [{ n: 1 }, { n: 2 }] })
  expect(schemaOf(webhook({ requestBody: body({ example: 3 }, { example: 2 }) }))).toEqual({
    example: 3,
    examples: [2, 3],
  })
  expect(schemaOf(webhook({ requestBody: body({ examples: [1] }, { example: 2 }) }))).toEqual({
    examples: [1],
  })
  expect(schemaOf(webhook({ requestBody: body(undefined, { example: 2 }) }))).toEqual({ examples: [2] })
})

test("a schema comes with what it refers to, each once, also when that refers to itself", () => {
  const components = {
    requestBodies: { Pet: body({ $ref: "#/components/schemas/Pet" }) },
    schemas: {
      Pet: { properties: { owner: { $ref: "#/components/schemas/Owner" }, example: { $ref: OWNER } } },
      Owner: { properties: { pets: { items: { $ref: "#/components/schemas/Pet" } } } },
      Unused: {},
    },
  }
  const schema = schemaOf({
    ...webhook({ requestBody: { $ref: "#/components/requestBodies/Pet" } }),
    components,
  })
  const properties = { owner: { $ref: "#/definitions/Owner" }, example: { $ref: "#/definitions/Owner" } }
  expect(schema).toEqual({
    properties,
    definitions: {
      Owner: { properties: { pets: { items: { $ref: "#/definitions/Pet" } } } },
      Pet: { properties },
    },
  })
})
const OWNER = "#/components/schemas/Owner"

test("bounds that OpenAPI 3.0 calls exclusive are as JSON schemas have them", () => {
  const properties = {
    a: { minimum: 1, exclusiveMinimum: true, maximum: 5, exclusiveMaximum: false },
    b: { exclusiveMinimum: 1, maximum: 9 },
    exclusiveMinimum: { type: "boolean" },
  }
  expect(schemaOf(webhook({ requestBody: body({ properties }) }))).toEqual({
    properties: { ...properties, a: { exclusiveMinimum: 1, maximum: 5 } },
  })
})

test("two that are called the same in different places keep apart, and data that look like a reference stay", () => {
  const schema = schemaOf({
    ...webhook({
      requestBody: body({
        anyOf: [{ $ref: "#/a/Same" }, { $ref: "#/b/Same" }, { $ref: "#/a/Same" }],
        example: { $ref: "#/not/a/reference" },
      }),
    }),
    a: { Same: { type: "string" } },
    b: { Same: { type: "number" } },
  })
  expect(schema).toMatchObject({
    anyOf: [{ $ref: "#/definitions/Same" }, { $ref: "#/definitions/Same_2" }, { $ref: "#/definitions/Same" }],
    definitions: { Same: { type: "string" }, Same_2: { type: "number" } },
    example: { $ref: "#/not/a/reference" },
  })
})

test("a chain of a thousand references is followed", () => {
  const schemas = Object.fromEntries(
    Array.from({ length: 1000 }, (_, i) => [`S${i}`, { items: { $ref: `#/components/schemas/S${i + 1}` } }]),
  )
  const components = { schemas: { ...schemas, S1000: {} } }
  const schema = schemaOf({
    ...webhook({ requestBody: body({ $ref: "#/components/schemas/S0" }) }),
    components,
  })
  expect(Object.keys((schema as { definitions: object }).definitions)).toHaveLength(1000)
})

test.each<[unknown, string, RegExp]>([
  ["text", "spec", /must be an OpenAPI document/],
  [{ openapi: "3.1.0" }, "spec", /has no webhooks/],
  [{ webhooks: [] }, "spec.webhooks", /must be an object/],
  [{ webhooks: { a: { get: {} } } }, "spec.webhooks.a", /has none of post, put, patch/],
  [webhook({ requestBody: { $ref: "other.yaml#/x" } }), "spec.webhooks.pet.new.post.requestBody", /outside/],
  [webhook({ requestBody: body({ $ref: "#/nowhere" }) }), "spec.webhooks.pet.new.schema", /#\/nowhere/],
  [
    { webhooks: Object.fromEntries(Array.from({ length: 1001 }, (_, i) => [i, { post: {} }])) },
    "spec.webhooks",
    /more than 1000/,
  ],
  [
    {
      ...webhook({
        requestBody: body({ anyOf: Array.from({ length: 1001 }, (_, i) => ({ $ref: `#/a/${i}` })) }),
      }),
      a: {},
    },
    "spec.webhooks.pet.new.schema",
    /more than 1000/,
  ],
  [
    { ...webhook({ requestBody: body({ $ref: "#/a" }) }), a: { $ref: "#/a" } },
    "spec.webhooks.pet.new.schema",
    /refers to itself/,
  ],
  [
    webhook({ requestBody: body(JSON.parse(`${'{"items":'.repeat(200)}{}${"}".repeat(200)}`)) }),
    "spec.webhooks.pet.new.schema",
    /nests deeper/,
  ],
])("what cannot be read is refused, and says where: %#", (spec, field, message) => {
  expect(() => read(spec)).toThrow(
    expect.objectContaining({ field, message: expect.stringMatching(message) }),
  )
})

test("a text is JSON or YAML", async () => {
  expect(await readSpec('{"webhooks": {}}')).toEqual({ webhooks: {} })
  expect(await readSpec("webhooks:\n  pet.new:\n    post: {}\nn: .nan")).toEqual({
    webhooks: { "pet.new": { post: {} } },
    n: null,
  })
  expect(await readSpec("")).toBeNull()
  const indented = Array.from({ length: 100 }, (_, i) => `${"  ".repeat(i)}a:`).join("\n")
  expect(JSON.stringify(await readSpec(indented))).toHaveLength(6 * 99 + 10)
})

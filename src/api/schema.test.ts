import { expect, expectTypeOf, test } from "vitest"
import { type Static, Type } from "./schema.ts"

test("schemas are plain JSON Schema", () => {
  const schema = Type.Object({
    name: Type.String({ minLength: 1 }),
    uid: Type.Optional(Type.Nullable(Type.String())),
    tags: Type.Optional(Type.Array(Type.Enum(["a", "b"]))),
    status: Type.Nullable(Type.Enum([0, 1])),
    metadata: Type.Record(Type.String()),
    other: Type.Nullable(Type.Named("Other", Type.Object({}))),
  })
  expect(JSON.parse(JSON.stringify(schema))).toEqual({
    type: "object",
    properties: {
      name: { type: "string", minLength: 1 },
      uid: { type: ["string", "null"] },
      tags: { type: "array", items: { type: "string", enum: ["a", "b"] } },
      status: { type: ["integer", "null"], enum: [0, 1, null] },
      metadata: { type: "object", additionalProperties: { type: "string" } },
      other: {
        anyOf: [
          { type: "object", properties: {}, additionalProperties: false, $id: "Other" },
          { type: "null" },
        ],
      },
    },
    required: ["name", "status", "metadata", "other"],
    additionalProperties: false,
  })
  expectTypeOf<Static<typeof schema>>().toExtend<{
    name: string
    uid?: string | null
    tags?: ("a" | "b")[]
    status: 0 | 1 | null
    metadata: Record<string, string>
  }>()
})

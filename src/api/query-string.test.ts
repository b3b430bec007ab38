import { expect, test } from "vitest"
import { coerceQuery, parseQuery } from "./query-string.ts"
import { jsonSchema, Type } from "./schema.ts"

const schema = jsonSchema(
  Type.Object({
    event_types: Type.Optional(Type.Array(Type.String())),
    classes: Type.Optional(Type.Array(Type.Integer())),
    limit: Type.Optional(Type.Integer()),
    with_content: Type.Optional(Type.Boolean()),
    name: Type.Optional(Type.Nullable(Type.String())),
  }),
)
const read = (text: string) => ({ ...coerceQuery(schema, parseQuery(text)) })

test.each([
  "event_types=a,b",
  "event_types=a&event_types=b",
  "event_types[]=a&event_types[]=b",
  "event_types[0]=a&event_types[1]=b",
  "event_types%5B%5D=a&event_types%5B%5D=b",
  "event_types=a%2Cb",
  "event_types=a&event_types[]=b",
])("%s is one list", (text) => expect(read(text)).toEqual({ event_types: ["a", "b"] }))

test("values have the type that is asked for", () => {
  expect(read("limit=25&with_content=false&name=5&classes=200,500&event_types=a")).toEqual({
    limit: 25,
    with_content: false,
    name: "5",
    classes: [200, 500],
    event_types: ["a"],
  })
})

test("what does not fit stays as it came, for the schema to refuse", () => {
  expect(read("limit=many&with_content=1&other=x&name=a&name=b")).toEqual({
    limit: "many",
    with_content: "1",
    other: "x",
    name: ["a", "b"],
  })
})

test("no name reaches a prototype", () => {
  expect(read("__proto__=x&constructor=y")).toEqual(
    Object.fromEntries([
      ["__proto__", "x"],
      ["constructor", "y"],
    ]),
  )
  expect(({} as { x?: unknown }).x).toBeUndefined()
})

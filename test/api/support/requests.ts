/** Requests to an operation, sound and broken in every way that a client can think of. */
import fc, { type Arbitrary } from "fast-check"
import { fitting, type Hints, JUNK, spoiled } from "./arbitraries.ts"
import { namesIn, type Operation } from "./operations.ts"
import { type Names, valueAt } from "./sample.ts"
import type { CallOptions } from "./server.ts"

export interface FuzzRequest extends CallOptions {
  readonly method: string
  readonly path: string
}

export interface Material {
  /** Names that exist, to be asked for now and then. */
  readonly names: readonly Names[]
  readonly hints: Hints
  readonly keys: readonly string[]
}

const SEGMENTS = fc.constantFrom(
  ...["%00", "%ff", "%zz", "%", "%2F", "..%2F..", "%2e%2e", "%E2%98%83", "%0d%0ax:%20y", "null", ""],
  ...[
    "constructor",
    "__proto__",
    "*",
    ":app_id",
    "{app_id}",
    "a,b",
    "a;b=c",
    "x".repeat(257),
    "x".repeat(5000),
  ],
)
const QUERIES = fc.constantFrom(
  ...["%", "limit=%zz", "limit=1&limit=2", "limit[]=1&limit[0]=2", "limit[__proto__]=1", "__proto__=1"],
  ...[
    "constructor=1",
    "&&==&",
    "iterator=%00",
    "iterator=-",
    "iterator=%ED%A0%80",
    `iterator=${"9".repeat(250)}`,
  ],
)
const GARBAGE: Arbitrary<string | Uint8Array> = fc.oneof(
  fc.constantFrom("{", "[".repeat(1000), '{"a":1,"a":2}', '{"__proto__":{}}', '"\\ud800"', "NaN", "\ufeff{}"),
  fc.string({ unit: "binary" }),
  fc.uint8Array(),
)
const HEADERS = fc.record(
  {
    "content-type": fc.constantFrom("text/plain", "application/json; charset=utf-16", "nonsense", "a/b"),
    "content-encoding": fc.constantFrom("gzip", "identity"),
    "idempotency-key": fc.constantFrom("same", "", "x".repeat(300)),
  },
  { requiredKeys: [] },
)

export function requestsTo(operation: Operation, material: Material): Arbitrary<FuzzRequest> {
  return fc
    .record({
      path: pathsOf(operation, material),
      query: queriesOf(operation, material),
      key: fc.constantFrom(...material.keys),
      headers: fc.oneof({ weight: 9, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: HEADERS }),
      content: contentsOf(operation, material),
    })
    .map(({ path, query, key, headers, content }) => ({
      method: operation.method,
      path: path + (query === "" ? "" : `?${query}`),
      key,
      headers: headers as { readonly [name: string]: string },
      ...content,
    }))
}

function pathsOf({ path }: Operation, { names }: Material): Arbitrary<string> {
  const parts = namesIn(path).map(({ name, before }) =>
    fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom(...names.map((one) => valueAt(one, name, before))) },
      { weight: 1, arbitrary: fc.string({ unit: "binary" }).map(encodeURIComponent) },
      { weight: 1, arbitrary: SEGMENTS },
    ),
  )
  return fc.tuple(...parts).map((values) => {
    const left = [...values]
    return path.replace(/\{\w+\}/g, () => left.shift()!)
  })
}

function queriesOf({ parameters }: Operation, { hints }: Material): Arbitrary<string> {
  const known = parameters.filter((one) => one.in === "query")
  const pairs = known.map(({ name, schema }) => {
    const fits = (hints[name] ?? fitting(schema, hints)).map(String)
    const value = fc.oneof({ weight: 5, arbitrary: fits }, { weight: 1, arbitrary: JUNK.map(String) })
    return value.map((one): [string, string] => [name, one])
  })
  // Few at once: a list that everything narrows is empty.
  const sound = fc
    .subarray(pairs, { maxLength: Math.min(pairs.length, 2) })
    .chain((some) => fc.tuple(...some))
    .map((query) => new URLSearchParams(query).toString().slice(0, 8000))
  return fc.oneof({ weight: 8, arbitrary: sound }, { weight: 1, arbitrary: QUERIES })
}

function contentsOf({ method, body }: Operation, { hints }: Material): Arbitrary<CallOptions> {
  const none = fc.constant({})
  if (method === "GET") return none
  const values = body === null ? JUNK : fitting(body, hints)
  const whole = (arbitrary: Arbitrary<unknown>) => arbitrary.map((one) => ({ body: one }))
  const raw = GARBAGE.map((one) => ({ raw: one }))
  return fc.oneof(
    { weight: body === null ? 8 : 1, arbitrary: none },
    { weight: body === null ? 1 : 8, arbitrary: whole(values) },
    { weight: body === null ? 0 : 8, arbitrary: whole(spoiled(values)) },
    { weight: 1, arbitrary: whole(JUNK) },
    { weight: 1, arbitrary: raw },
  )
}

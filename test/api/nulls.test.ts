/** Null for an optional field, which several languages write for "no value", wherever a body has one. */
import { expect, onTestFinished, test } from "vitest"
import { Receiver } from "../support/receiver.ts"
import { BESIDES } from "./support/naming.ts"
import { isOperators, operationsOf, type Schema } from "./support/operations.ts"
import { type Known, requestOf, sample } from "./support/sample.ts"
import { ApiServer } from "./support/server.ts"
import { fillTenant } from "./support/tenant.ts"

/** Values for the objects inside bodies. */
const INSIDE: Known = {
  username: "me",
  password: "secret",
  token: "secret",
  tokenUrl: "http://127.0.0.1:9/token",
  clientId: "me",
  clientSecret: "secret",
}

/** The same body with null in a field, and without the field. */
type Field = readonly [path: string, withNull: object, without: object]

/** For each optional field of a body, the smallest bodies that have null there and do without it. */
function* nulls(schema: Schema, known: Known): Generator<Field> {
  for (const one of schema.anyOf ?? []) yield* nulls(one, known)
  if (schema.items !== undefined)
    for (const [path, ...both] of nulls(schema.items, known)) yield [`[].${path}`, [both[0]], [both[1]]]
  const { properties = {}, required = [] } = schema
  const smallest = Object.keys(properties).length === 0 ? {} : (sample(schema, known) as object)
  for (const [name, field] of Object.entries(properties)) {
    const having = (value: unknown) => ({ ...smallest, [name]: value })
    if (!required.includes(name)) yield [name, having(null), having(undefined)]
    for (const [path, withNull, without] of nulls(field, known))
      yield [`${name}.${path}`, having(withNull), having(without)]
  }
}

/** As if left out, null would widen these actions to everything. */
const BULK = ["v1.dead-letter.retry-many", "v1.dead-letter.discard-many", "v1.delivery.send-now"]

test("the filter of a bulk action refuses null", async () => {
  const server = await ApiServer.start()
  const operations = (await operationsOf(server)).filter(({ id }) => BULK.includes(id))
  for (const operation of operations) {
    const { method, path } = requestOf(operation, [], {})
    for (const field of Object.keys(operation.body!.properties!)) {
      const answer = await server.call(method, path, { body: { [field]: null } })
      const detail = [{ loc: ["body", field], msg: expect.stringMatching(/, not null$|must be one of/) }]
      expect(answer, field).toMatchObject({ status: 422, body: { detail } })
    }
  }
  expect(operations).toHaveLength(BULK.length)
})

test("no operation refuses null for a field that it does not ask for", { timeout: 300_000 }, async () => {
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  const server = await ApiServer.start()
  const operations = (await operationsOf(server)).filter(
    ({ id, body }) => body !== null && !BULK.includes(id),
  )
  let fields = 0
  const refused: string[] = []
  for (const operation of operations) {
    const tenant = { orgId: `org_${operation.id.replace(/\W/g, "")}`, mark: "zanzibar", suffix: "first" }
    const { key: tenantKey, ids } = await fillTenant(server, receiver, tenant)
    const key = isOperators(operation) ? server.key : tenantKey
    const SessionIn = { key: tenantKey, cookie: false }
    const known = { ...BESIDES, ...INSIDE, SessionIn, ...ids.references }
    const { method, path, body: smallest } = requestOf(operation, [ids.names], known)
    // Only a disabled endpoint can be enabled.
    const prepare = async () => {
      if (operation.id === "v1.alert-channel.rotate-secret")
        await server.call("PUT", path.replace(/\/secret.*/, ""), { key, body: BESIDES.AlertChannelIn })
      if (operation.id !== "v1.endpoint.enable") return
      await server.call("PATCH", path.replace(/\/enable$/, ""), { key, body: { disabled: true } })
    }
    await prepare()
    expect((await server.call(method, path, { key, body: smallest })).status).toBeLessThan(300)
    for (const [field, withNull, without] of nulls(operation.body!, known)) {
      fields++
      await prepare()
      const { status, text } = await server.call(method, path, { key, body: withNull })
      if (status < 300) continue
      // One of two fields may have to be there, and the calls before this one may be in its way: then it is refused without the field too.
      const left = await server.call(method, path, { key, body: without })
      if (left.text !== text) refused.push(`${operation.id} ${field}: ${text}`)
    }
  }
  expect(refused).toEqual([])
  expect(fields).toBeGreaterThan(150)
})

test("null leaves a field as a call without it would, and takes away what can be taken away", async () => {
  const server = await ApiServer.start()
  const call = async (method: string, path: string, body: object) =>
    (await server.call(method, path, { body })).body
  const metadata = { tier: "gold" }
  expect(await call("POST", "/app", { name: "Acme", uid: "acme", metadata: null })).toMatchObject({
    metadata: {},
  })
  expect(await call("PATCH", "/app/acme", { metadata })).toMatchObject({ metadata })
  expect(await call("PATCH", "/app/acme", { name: null, metadata: null })).toMatchObject({
    name: "Acme",
    metadata,
  })
  expect(await call("PUT", "/app/acme", { name: "Acme", uid: "acme", metadata: null })).toMatchObject({
    metadata: {},
  })
  const endpoint = { url: "https://example.com/", uid: "hook", description: "A", eventTypes: ["a"], metadata }
  await call("POST", "/app/acme/endpoint", endpoint)
  const hook = "/app/acme/endpoint/hook"
  const patch = { url: null, description: null, disabled: null, metadata: null, eventTypes: null }
  expect(await call("PATCH", hook, patch)).toMatchObject({ ...endpoint, eventTypes: null })
  const put = { ...patch, url: "https://example.com/", uid: "hook" }
  expect(await call("PUT", hook, put)).toMatchObject({ description: "", disabled: false, metadata: {} })
  const message = { eventType: "a", payload: { a: null }, metadata: null, priority: null, eventId: null }
  expect(await call("POST", "/app/acme/msg", message)).toMatchObject({ payload: { a: null } })
  expect(await server.call("POST", "/app", { body: { name: null } })).toMatchObject({
    status: 422,
    body: { detail: [{ loc: ["body", "name"] }] },
  })
})

test("null in the newer name of a field leaves the value that the older name gives", async () => {
  const server = await ApiServer.start()
  const both = async (
    make: string,
    one: string,
    made: object,
    replaced: object,
    older: object,
    shown: object,
  ) => {
    const newer = Object.fromEntries(Object.keys(shown).map((name) => [name, null]))
    const calls = [
      ["POST", make, made],
      ["PUT", one, replaced],
      ["PATCH", one, {}],
    ] as const
    for (const [method, path, rest] of calls) {
      const answer = await server.call(method, path, { body: { ...rest, ...older, ...newer } })
      expect([method, answer.body]).toMatchObject([method, shown])
    }
    const cleared = await server.call("PATCH", one, { body: newer })
    expect(cleared.body).toMatchObject(newer)
  }
  const acme = { name: "Acme", uid: "acme" }
  await both("/app", "/app/acme", acme, acme, { rateLimit: 5 }, { throttleRate: 5 })
  const hook = { url: "https://example.com/", uid: "hook" }
  const older = { rateLimit: 5, filterTypes: ["a.b"] }
  const shown = { throttleRate: 5, eventTypes: ["a.b"] }
  await both("/app/acme/endpoint", "/app/acme/endpoint/hook", hook, hook, older, shown)
  const paid = { description: "Paid" }
  await both(
    "/event-type",
    "/event-type/paid",
    { name: "paid", ...paid },
    paid,
    { featureFlag: "f" },
    { featureFlags: ["f"] },
  )
})

import { expect, test } from "vitest"
import { eventFrame } from "../../test/support/fake-relay.ts"
import { eventFrom } from "./event.ts"
import { outcomeOf } from "./outcome.ts"

const EVENT = eventFrom(eventFrame())
const of = (answer: unknown) => outcomeOf((() => answer) as never, EVENT)

test.each([
  ["success", [200, 201, 204, 226, 299]],
  ["permanent", [400, 401, 403, 404, 409, 410, 422, 499]],
  ["transient", [100, 300, 301, 302, 304, 307, 308, 408, 425, 429, 500, 501, 503, 599]],
])("these statuses are %s", async (result, statuses) => {
  for (const status of statuses) expect(await of({ status })).toMatchObject({ result, status, error: null })
})

test("a handler may return a result, details, or nothing", async () => {
  const none = { status: null, error: null, retryAfterSeconds: null, response: null }
  expect(await of(undefined)).toEqual({ ...none, result: "success" })
  expect(await of(Promise.resolve())).toEqual({ ...none, result: "success" })
  expect(await of({})).toEqual({ ...none, result: "success" })
  for (const result of ["success", "permanent", "transient"])
    expect(await of(result)).toEqual({ ...none, result })
  const details = { result: "permanent", status: 500, error: "unknown customer", body: Buffer.from("no") }
  expect(await of(details)).toEqual({ ...none, ...details, body: undefined, response: { body: "no" } })
})

test("Retry-After counts for transient failures only, in whole seconds", async () => {
  expect(await of({ status: 503, retryAfterSeconds: 1.2 })).toMatchObject({ retryAfterSeconds: 2 })
  expect(await of({ status: 503, retryAfterSeconds: 1e9 })).toMatchObject({ retryAfterSeconds: 86_400 })
  for (const answer of [
    { status: 404, retryAfterSeconds: 5 },
    { status: 503, retryAfterSeconds: 0 },
    { status: 503, retryAfterSeconds: Number.NaN },
    { status: 503, retryAfterSeconds: -1 },
  ])
    expect(await of(answer)).toMatchObject({ retryAfterSeconds: null })
})

test("a handler that throws has failed transiently, and so has one that returns nonsense", async () => {
  const thrown = outcomeOf(() => {
    throw new Error("no database")
  }, EVENT)
  expect(await thrown).toMatchObject({ result: "transient", status: null, error: "no database" })
  const rejected = await of(Promise.reject("x".repeat(5000)))
  expect(rejected).toMatchObject({ result: "transient", error: "x".repeat(1000) })
  for (const [answer, error] of [
    ["done", 'the handler returned "done"'],
    [17, "the handler returned 17"],
    [{ status: 700 }, "the handler returned the status 700"],
    [{ status: "200" }, "the handler returned the status 200"],
    [{ result: "maybe" }, "the handler returned the result maybe"],
    [{ body: 17 }, expect.any(String)],
  ])
    expect(await of(answer)).toMatchObject({ result: "transient", error })
})

/** Svix's client and our endpoints. */
import { Ordering, type Svix } from "svix"
import { expect, test } from "vitest"
import { TestClock } from "../../support/clock.ts"
import { refusal, svixFor } from "../support/sdk.ts"
import { ApiServer } from "../support/server.ts"

const URL = "https://example.com/hook"

async function start(clock?: TestClock): Promise<{ server: ApiServer; svix: Svix }> {
  const server = await ApiServer.start(clock === undefined ? {} : { clock })
  const svix = svixFor(server)
  await svix.application.create({ name: "Acme", uid: "acme" })
  return { server, svix }
}

test("an endpoint is created, read, replaced, changed and deleted", async () => {
  const { svix } = await start()
  const made = await svix.endpoint.create("acme", {
    url: "https://example.com",
    uid: "hook",
    description: "first",
    eventTypes: ["invoice.paid"],
    channels: ["project:1+2"],
    throttleRate: 5,
    metadata: { a: "1" },
    headers: { "X-Team": "billing" },
  })
  expect(made).toMatchObject({
    url: "https://example.com/",
    uid: "hook",
    eventTypes: ["invoice.paid"],
    channels: ["project:1+2"],
    throttleRate: 5,
    disabled: false,
  })
  expect(await svix.endpoint.get("acme", "hook")).toEqual(made)
  expect(await svix.endpoint.getHeaders("acme", "hook")).toEqual({
    headers: { "X-Team": "billing" },
    sensitive: [],
  })
  const patched = await svix.endpoint.patch("acme", "hook", { disabled: true, eventTypes: null })
  expect(patched).toMatchObject({
    disabled: true,
    eventTypes: null,
    channels: ["project:1+2"],
    description: "first",
  })
  const replaced = await svix.endpoint.upsert("acme", "hook", { url: URL })
  expect(replaced).toMatchObject({
    id: made.id,
    url: URL,
    uid: null,
    description: "",
    disabled: false,
    metadata: {},
  })
  await svix.endpoint.delete("acme", made.id)
  expect(await refusal(svix.endpoint.get("acme", made.id))).toMatchObject({ status: 404 })
})

test("a URL that cannot be sent to is refused with the reason, and so is an unknown field", async () => {
  const { server, svix } = await start()
  for (const url of ["ftp://example.com/", "http://10.0.0.1/", "not a url", "http://[::]/"]) {
    expect(await refusal(svix.endpoint.create("acme", { url }))).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ["body", "url"] }] },
    })
  }
  const unknown = await server.call("POST", "/app/acme/endpoint", { body: { url: URL, colour: "red" } })
  expect(unknown).toMatchObject({ status: 422, body: { detail: [{ loc: ["body", "colour"] }] } })
  expect(await refusal(svix.endpoint.create("acme", { url: URL, eventTypes: [] }))).toMatchObject({
    status: 422,
  })
  expect(await refusal(svix.endpoint.create("nobody", { url: URL }))).toMatchObject({ status: 404 })
})

test("lists are the newest first, and go both ways", async () => {
  const clock = new TestClock()
  const { svix } = await start(clock)
  for (const uid of ["a", "b", "c"]) {
    await svix.endpoint.create("acme", { url: URL, uid })
    // Ids of the same four milliseconds have no order between them.
    clock.advance(5)
  }
  const first = await svix.endpoint.list("acme", { limit: 2 })
  expect([first.data.map(({ uid }) => uid), first.done]).toEqual([["c", "b"], false])
  const second = await svix.endpoint.list("acme", { limit: 2, iterator: first.iterator })
  expect([second.data.map(({ uid }) => uid), second.done]).toEqual([["a"], true])
  const back = await svix.endpoint.list("acme", { limit: 2, iterator: second.prevIterator! })
  expect(back.data).toEqual(first.data)
  const ascending = await svix.endpoint.list("acme", { order: Ordering.Ascending })
  expect(ascending.data.map(({ uid }) => uid)).toEqual(["a", "b", "c"])
})

test("secrets are shown, given and rotated, and a rotation answers with the new one", async () => {
  const { server, svix } = await start()
  const secret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
  await svix.endpoint.create("acme", { url: URL, uid: "given", secret })
  expect((await svix.endpoint.getSecret("acme", "given")).key).toBe(secret)
  await svix.endpoint.create("acme", { url: URL, uid: "made" })
  const before = (await svix.endpoint.getSecret("acme", "made")).key
  expect(before).toMatch(/^whsec_/)
  await svix.endpoint.rotateSecret("acme", "made", {})
  expect((await svix.endpoint.getSecret("acme", "made")).key).not.toBe(before)
  await svix.endpoint.rotateSecret("acme", "made", { key: secret })
  expect((await svix.endpoint.getSecret("acme", "made")).key).toBe(secret)
  const rotate = (body: object) => server.call("POST", "/app/acme/endpoint/made/secret/rotate", { body })
  expect(await rotate({ key: secret })).toMatchObject({ status: 200, body: { key: secret } })
  const { body: rotated } = await rotate({})
  for (const [agent, status] of Object.entries({
    "svix-libs/1.99.1/java": 204,
    "svix-libs/2.5.0/javascript": 204,
    "svix-libs/2.6.0/python": 200,
    "svix-libs/2.10.0/python": 200,
  }))
    expect(
      await server.call("POST", "/app/acme/endpoint/made/secret/rotate", {
        body: { key: rotated.key },
        headers: { "user-agent": agent },
      }),
      agent,
    ).toMatchObject({ status })
  expect(await svix.endpoint.getSecret("acme", "made")).toEqual(rotated)
  const bad = svix.endpoint.rotateSecret("acme", "made", { key: "whsec_short" })
  expect(await refusal(bad)).toMatchObject({ status: 422 })
})

test("headers are replaced and merged, and credentials are not shown", async () => {
  const { svix } = await start()
  await svix.endpoint.create("acme", { url: URL, uid: "hook" })
  await svix.endpoint.setHeaders("acme", "hook", { headers: { "X-A": "1", "X-Api-Key": "hidden" } })
  expect(await svix.endpoint.getHeaders("acme", "hook")).toEqual({
    headers: { "X-A": "1" },
    sensitive: ["X-Api-Key"],
  })
  await svix.endpoint.patchHeaders("acme", "hook", { headers: { "X-B": "2" }, deleteHeaders: ["x-a"] })
  expect(await svix.endpoint.getHeaders("acme", "hook")).toEqual({
    headers: { "X-B": "2" },
    sensitive: ["X-Api-Key"],
  })
  await svix.endpoint.patchHeaders("acme", "hook", { headers: { "x-b": "3" }, deleteHeaders: ["X-API-KEY"] })
  expect(await svix.endpoint.getHeaders("acme", "hook")).toEqual({ headers: { "x-b": "3" }, sensitive: [] })
  for (const name of ["webhook-id", "x-svix-id", "X-Amzn-Trace-Id"]) {
    const reserved = svix.endpoint.setHeaders("acme", "hook", { headers: { [name]: "mine" } })
    expect(await refusal(reserved)).toMatchObject({ status: 422 })
  }
})

test("headers that are patched at the same moment are all there, and a patch with a bad secret changes nothing", async () => {
  const { server, svix } = await start()
  await svix.endpoint.create("acme", { url: URL, uid: "hook", description: "before" })
  const patch = (i: number) => svix.endpoint.patchHeaders("acme", "hook", { headers: { [`x-${i}`]: `${i}` } })
  await Promise.all(Array.from({ length: 8 }, (_, i) => patch(i)))
  expect(Object.keys((await svix.endpoint.getHeaders("acme", "hook")).headers)).toHaveLength(8)
  const body = { description: "after", secret: "whsec_short" }
  expect(await server.call("PATCH", "/app/acme/endpoint/hook", { body })).toMatchObject({ status: 422 })
  expect((await svix.endpoint.get("acme", "hook")).description).toBe("before")
})

test("the base64 alone is a secret too, and is shown with its prefix", async () => {
  const { server, svix } = await start()
  const [bare, other, third] = ["A", "B", "C"].map((letter) => letter.repeat(32)) as [string, string, string]
  const shown = async () => (await svix.endpoint.getSecret("acme", "bare")).key
  await svix.endpoint.create("acme", { url: URL, uid: "bare", secret: bare })
  expect(await shown()).toBe(`whsec_${bare}`)
  await svix.endpoint.rotateSecret("acme", "bare", { key: other })
  expect(await shown()).toBe(`whsec_${other}`)
  await server.call("PATCH", "/app/acme/endpoint/bare", { body: { secret: third } })
  expect(await shown()).toBe(`whsec_${third}`)
  const operational = { url: URL, uid: "told", secret: bare }
  expect(await server.call("POST", "/operational-webhook/endpoint", { body: operational })).toMatchObject({
    status: 201,
  })
  for (const secret of ["A".repeat(31), "A".repeat(100), `${"A".repeat(32)}!`])
    expect(await refusal(svix.endpoint.create("acme", { url: URL, secret }))).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ["body", "secret"] }] },
    })
})

test("old secrets have a limit", async () => {
  const { svix } = await start()
  await svix.endpoint.create("acme", { url: URL, uid: "hook" })
  for (let i = 0; i < 10; i++) await svix.endpoint.rotateSecret("acme", "hook", {})
  expect(await refusal(svix.endpoint.rotateSecret("acme", "hook", {}))).toMatchObject({
    status: 400,
    body: { code: "limit_reached" },
  })
})

test("older spellings are understood, and both are answered", async () => {
  const { server } = await start()
  const body = { url: URL, filterTypes: ["a"], rateLimit: 3, version: 1 }
  const { body: made } = await server.call("POST", "/app/acme/endpoint", { body })
  expect(made).toMatchObject({
    eventTypes: ["a"],
    filterTypes: ["a"],
    rateLimit: 3,
    throttleRate: 3,
    version: 1,
  })
  const path = `/app/acme/endpoint/${made.id}`
  expect((await server.call("PATCH", path, { body: { version: 2 } })).body.version).toBe(2)
  expect((await server.call("PATCH", path, { body: { disabled: true } })).body.version).toBe(2)
  expect((await server.call("GET", path)).body.version).toBe(2)
  expect((await server.call("PUT", path, { body: { url: URL } })).body.version).toBe(1)
  expect((await server.call("PATCH", path, { body: { version: 0 } })).status).toBe(422)
  expect(
    (await server.call("POST", "/app/acme/endpoint", { body: { ...body, version: 2 } })).body,
  ).toMatchObject({ version: 2 })
})

test("our own fields go in and come out, and pausing holds", async () => {
  const { server } = await start()
  const body = {
    url: URL,
    uid: "hook",
    ordered: true,
    concurrency: 3,
    retry: { delays: [1, 2], maxAttempts: 3 },
    auth: { type: "bearer", token: "hidden-token" },
  }
  const made = await server.call("POST", "/app/acme/endpoint", { body })
  expect(made.body).toMatchObject({
    ordered: true,
    concurrency: 3,
    retry: null,
    policy: { maxAttempts: 3 },
    paused: false,
  })
  expect(made.text).not.toContain("hidden-token")
  const named = await server.call("PATCH", "/app/acme/endpoint/hook", { body: { retry: "jobs", auth: null } })
  expect(named.body).toMatchObject({ retry: "jobs", policy: { maxAttempts: 6 } })
  const paused = await server.call("POST", "/app/acme/endpoint/hook/pause")
  expect(paused.body.paused).toBe(true)
  expect((await server.call("POST", "/app/acme/endpoint/hook/resume")).body.paused).toBe(false)
  const wrong = await server.call("PATCH", "/app/acme/endpoint/hook", { body: { retry: "nothing" } })
  expect(wrong).toMatchObject({ status: 422, body: { detail: [{ loc: ["body", "retry"] }] } })
})

test.each(["pause", "resume", "trip", "reset"])("%s refuses fields that it does not have", async (action) => {
  const server = await ApiServer.start()
  await server.call("POST", "/app", { body: { name: "Acme", uid: "acme" } })
  await server.call("POST", "/app/acme/endpoint", { body: { url: "https://example.com/hook", uid: "hook" } })
  const route = `/app/acme/endpoint/hook/${action}`
  expect(await server.call("POST", route, { body: { seconds: 60 } })).toMatchObject({
    status: 422,
    body: { detail: [{ loc: ["body", "seconds"], msg: "is not supported here; none is" }] },
  })
  expect((await server.call("POST", route, { body: {} })).status).toBe(200)
  expect((await server.call("POST", route)).status).toBe(200)
})

test("a disabled endpoint comes back: counts first, then what was chosen", async () => {
  const server = await ApiServer.start()
  await server.call("POST", "/app", { body: { name: "Acme", uid: "acme" } })
  const body = { url: "https://example.com/hook", uid: "hook" }
  await server.call("POST", "/app/acme/endpoint", { body })
  const route = "/app/acme/endpoint/hook/enable"
  for (const nothing of [{ body: {} }, {}])
    expect(await server.call("POST", route, nothing)).toMatchObject({
      status: 409,
      body: { detail: expect.stringContaining("is not disabled") },
    })
  await server.call("POST", "/app/acme/endpoint/hook/pause")
  const send = () =>
    server.call("POST", "/app/acme/msg", { body: { eventType: "invoice.paid", payload: { n: 1 } } })
  await send()
  await server.call("PATCH", "/app/acme/endpoint/hook", { body: { disabled: true } })
  const preview = await server.call("GET", route)
  expect(preview).toMatchObject({
    status: 200,
    body: { disabled: true, disabledReason: "manual", held: 1, missedIsLowerBound: false },
  })
  expect(await server.call("POST", route, { body: { held: "burn" } })).toMatchObject({
    status: 422,
    body: { detail: [{ loc: ["body", "held"], msg: "must be one of send, discard" }] },
  })
  const choice = { held: "discard", missed: "replay" }
  const enabled = await server.call("POST", route, { body: choice })
  expect(enabled).toMatchObject({
    status: 200,
    body: {
      held: 1,
      discardTaskId: expect.stringMatching(/^qtask_/),
      replayTaskId: expect.stringMatching(/^qtask_/),
      endpoint: { uid: "hook", disabled: true },
    },
  })
  expect(enabled.body).not.toHaveProperty("disabled")
  const task = async (id: string) => (await server.call("GET", `/task/${id}`)).body
  await expect
    .poll(() => task(enabled.body.replayTaskId), { timeout: 20_000 })
    .toMatchObject({ status: "finished", task: "endpoint.replay" })
  expect(await task(enabled.body.discardTaskId)).toEqual({
    id: enabled.body.discardTaskId,
    updatedAt: expect.any(String),
    status: "finished",
    task: "endpoint.enable",
    data: { total: 1, done: 1, changed: 1 },
  })
  expect((await server.call("GET", "/app/acme/endpoint/hook")).body).toMatchObject({ disabled: false })
})

test("a portal that may not send again cannot replay what an endpoint missed", async () => {
  const server = await ApiServer.start()
  const { posthorn } = server
  const { id: appId } = await posthorn.applications.create({ name: "Acme", uid: "acme" })
  await posthorn.endpoints.create("acme", { url: "https://example.com/hook", uid: "hook", disabled: true })
  const { token } = await posthorn.keys.create({
    name: "portal",
    scope: "application",
    appId,
    capabilities: ["ManageEndpoint"],
  })
  const enable = (body: object) => server.call("POST", "/app/acme/endpoint/hook/enable", { body, key: token })
  expect(await enable({ missed: "replay" })).toMatchObject({
    status: 403,
    body: { detail: expect.stringContaining("CreateAttempts") },
  })
  expect(await enable({})).toMatchObject({ status: 200, body: { endpoint: { disabled: false } } })
})

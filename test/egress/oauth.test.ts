/** OAuth 2.0 client credentials: a token is fetched when it is needed, kept while it is good, and never from a closed address. */
import { describe, expect, test } from "vitest"
import type { EndpointInput } from "../../src/resources/endpoints.ts"
import { Harness } from "../support/harness.ts"
import type { Answer, Receiver } from "../support/receiver.ts"
import { Canary, OPEN } from "./canary.ts"
import { Site } from "./site.ts"

const CLIENT = { type: "oauth2", clientId: "acme/7", clientSecret: "s:cret " } as const

/** Tokens are numbered in the order that they are given out. */
function givesTokens(receiver: Receiver, expiresIn?: number): void {
  let given = 0
  receiver.always("/token", (_request, response) => {
    response.end(
      JSON.stringify({ access_token: `token-${++given}`, token_type: "bearer", expires_in: expiresIn }),
    )
  })
}

async function withOauth(input: Partial<EndpointInput> = {}) {
  const harness = await Harness.start()
  givesTokens(harness.receiver, 3600)
  const auth = { ...CLIENT, tokenUrl: harness.receiver.url("/token") }
  const id = await harness.endpoint({ auth, retry: "jobs", ...input })
  return { harness, receiver: harness.receiver, auth, id }
}

const tokens = (receiver: Receiver) => receiver.to("/").map(({ headers }) => headers.authorization)

test("a token is asked for as the client, with scope and audience, and sent with the webhook", async () => {
  const { harness, receiver, auth, id } = await withOauth()
  await harness.posthorn.endpoints.update("acme", id, {
    auth: { ...auth, scope: "hooks a", audience: "api" },
  })
  await harness.send()
  await harness.published("delivery.delivered", 1)
  const [asked] = receiver.to("/token")
  expect(asked?.headers).toMatchObject({
    authorization: `Basic ${btoa("acme%2F7:s%3Acret%20")}`,
    "content-type": "application/x-www-form-urlencoded",
  })
  expect(Object.fromEntries(new URLSearchParams(asked?.body.toString()))).toEqual({
    grant_type: "client_credentials",
    scope: "hooks a",
    audience: "api",
  })
  expect(tokens(receiver)).toEqual(["Bearer token-1"])
  for (const { headers } of receiver.requests) expect(headers["accept-encoding"]).toBe("identity")
})

test("one token serves many deliveries", async () => {
  const { harness, receiver } = await withOauth({ concurrency: 10 })
  const message = { eventType: "a.b", payload: {} }
  await harness.posthorn.sendBatch("acme", new Array(40).fill(message))
  await harness.published("delivery.delivered", 40)
  await harness.send()
  await harness.published("delivery.delivered", 41)
  expect(receiver.to("/token")).toHaveLength(1)
  expect(new Set(tokens(receiver))).toEqual(new Set(["Bearer token-1"]))
})

test("deliveries that need a new token at the same moment share one fetch", async () => {
  const { harness, receiver } = await withOauth({ concurrency: 10 })
  // Good for a second: the margin of a minute leaves no more of it.
  givesTokens(receiver, 61)
  // The first ones let the lane grow; the next wait at the receiver until the token has expired behind them.
  let arrived = 0
  const expired = Promise.withResolvers<void>()
  receiver.always("/", (_request, response) => {
    if (++arrived > 20) void expired.promise.then(() => response.end())
    else response.end()
  })
  await harness.posthorn.sendBatch("acme", new Array(60).fill({ eventType: "a.b", payload: {} }))
  await receiver.arrived("/", 25)
  const fetched = Promise.withResolvers<void>()
  receiver.always("/token", (_request, response) => {
    void fetched.promise.then(() => response.end('{"access_token":"token-2"}'))
  })
  harness.clock.advance(1000)
  expired.resolve()
  await receiver.arrived("/token", 2)
  for (let turn = 0; turn < 20; turn++) await harness.posthorn.health()
  fetched.resolve()
  await harness.published("delivery.delivered", 60)
  expect(receiver.to("/token")).toHaveLength(2)
  expect(new Set(tokens(receiver))).toEqual(new Set(["Bearer token-1", "Bearer token-2"]))
})

test("a token is fetched anew a minute before it expires", async () => {
  const { harness, receiver } = await withOauth()
  const sendAfter = async (ms: number, count: number) => {
    harness.clock.advance(ms)
    await harness.send()
    await harness.published("delivery.delivered", count)
  }
  await sendAfter(0, 1)
  await sendAfter(3_539_000, 2)
  await sendAfter(1000, 3)
  expect(tokens(receiver)).toEqual(["Bearer token-1", "Bearer token-1", "Bearer token-2"])
})

test("a token that the receiver refuses is not used again", async () => {
  const { harness, receiver } = await withOauth()
  receiver.queue("/", 200, 401)
  await harness.send()
  await harness.published("delivery.delivered", 1)
  await harness.send()
  expect((await harness.published("delivery.attempt", 2))[1]).toMatchObject({ response_status: 401 })
  expect(await harness.attemptAfter(1000)).toMatchObject({ success: true })
  expect(tokens(receiver)).toEqual(["Bearer token-1", "Bearer token-1", "Bearer token-2"])
})

test("a changed endpoint fetches its own token", async () => {
  const { harness, receiver, auth, id } = await withOauth()
  await harness.send()
  await harness.published("delivery.delivered", 1)
  await harness.posthorn.endpoints.update("acme", id, { auth: { ...auth, clientId: "other" } })
  await harness.send()
  await harness.published("delivery.delivered", 2)
  expect(tokens(receiver)).toEqual(["Bearer token-1", "Bearer token-2"])
})

test("a token that was being fetched when the endpoint changed is not used for the changed endpoint", async () => {
  const { harness, receiver, auth, id } = await withOauth({ concurrency: 1 })
  let release = () => {}
  const held = new Promise<void>((asked) => {
    receiver.queue("/token", (_request, response) => {
      release = () =>
        void response.end(JSON.stringify({ access_token: "of-the-old-client", expires_in: 3600 }))
      asked()
    })
  })
  await harness.send()
  await held
  await harness.posthorn.endpoints.update("acme", id, {
    auth: { ...auth, clientId: "other" },
    url: receiver.url("/new"),
  })
  release()
  await harness.published("delivery.attempt", 1)
  await harness.send()
  await harness.published("delivery.attempt", 2)
  const used = receiver.to("/new").map(({ headers }) => headers.authorization)
  expect(used.at(-1)).toBe("Bearer token-1")
})

describe("a token endpoint that gives no token fails the attempt, which is tried again", () => {
  test.each<[string, Answer]>([
    ["an error", 500],
    ["a refusal", 401],
    ["no JSON", (_request, response) => void response.end("<html>")],
    ["JSON without a token", (_request, response) => void response.end("{}")],
    ["null", (_request, response) => void response.end("null")],
    [
      "a token with a line break",
      (_request, response) => void response.end('{"access_token":"a\\r\\nx: y"}'),
    ],
    [
      "an endless token",
      (_request, response) => void response.end(`{"access_token":"${"x".repeat(70_000)}"}`),
    ],
    [
      "one that has expired",
      (_request, response) => void response.end('{"access_token":"a","expires_in":0}'),
    ],
  ])("%s", async (_what, answer) => {
    const { harness, receiver } = await withOauth()
    receiver.queue("/token", answer)
    await harness.send()
    expect(await harness.published("delivery.attempt", 1)).toMatchObject([
      { error: "auth_error", success: false, response_status: null, attempt_count: 1 },
    ])
    expect(receiver.to("/")).toEqual([])
    expect(await harness.attemptAfter(1000)).toMatchObject({ success: true, attempt_count: 2 })
    expect(tokens(receiver)).toEqual(["Bearer token-1"])
  })

  test("a token endpoint that never answers does not hold the attempt beyond its deadline", async () => {
    const { harness, receiver } = await withOauth({ retry: { delays: [10], maxAttempts: 2, timeout: 2 } })
    const release = receiver.hold("/token")
    await harness.send()
    await receiver.arrived("/token", 1)
    harness.clock.advance(2000)
    expect(await harness.published("delivery.attempt", 1)).toMatchObject([{ error: "timeout" }])
    release(500)
  })
})

test("the time that a token takes is part of the attempt's own", async () => {
  const { harness, receiver } = await withOauth({ retry: { delays: [10], maxAttempts: 2, timeout: 2 } })
  const late = Promise.withResolvers<void>()
  receiver.queue("/token", (_request, response) => {
    void late.promise.then(() => response.end('{"access_token":"late"}'))
  })
  receiver.always("/", () => {})
  await harness.send()
  await receiver.arrived("/token", 1)
  harness.clock.advance(1500)
  late.resolve()
  await receiver.arrived("/", 1)
  harness.clock.advance(500)
  expect(await harness.published("delivery.attempt", 1)).toMatchObject([
    { error: "timeout", duration_ms: 2000 },
  ])
})

describe("the guard stands before the token endpoint too", () => {
  async function guarded() {
    const canary = await Canary.start()
    const site = await Site.start()
    const harness = await Harness.start({ egress: { allow: [`${OPEN}/32`] } })
    return { canary, site, harness }
  }

  test("a token endpoint that is not allowed is refused when it is set, and nothing is written", async () => {
    const { canary, site, harness } = await guarded()
    const auth = { ...CLIENT, tokenUrl: canary.url() }
    const refusal = { code: "invalid_input", field: "auth.tokenUrl" }
    await expect(harness.endpoint({ url: site.url(), auth })).rejects.toMatchObject(refusal)
    const id = await harness.endpoint({ url: site.url() })
    await expect(harness.posthorn.endpoints.update("acme", id, { auth })).rejects.toMatchObject(refusal)
    expect(await harness.sql("SELECT version FROM endpoints")).toEqual([{ version: 1 }])
  })

  test("a token endpoint that was allowed when it was set is refused when it is used", async () => {
    const { canary, site, harness } = await guarded()
    await harness.restart({ egress: { allow: ["127.0.0.0/8"] } })
    await harness.endpoint({ url: site.url(), auth: { ...CLIENT, tokenUrl: canary.url() } })
    await harness.restart({ egress: { allow: [`${OPEN}/32`] } })
    await harness.send()
    expect(await harness.published("delivery.attempt", 1)).toMatchObject([{ error: "target_forbidden" }])
    expect(site.visits).toEqual([])
  })

  test("a redirect from it is not followed", async () => {
    const { canary, site, harness } = await guarded()
    site.answer = (_visit, response) => void response.writeHead(307, { location: canary.url() }).end()
    await harness.endpoint({ url: site.url("/hook"), auth: { ...CLIENT, tokenUrl: site.url("/token") } })
    await harness.send()
    expect(await harness.published("delivery.attempt", 1)).toMatchObject([{ error: "auth_error" }])
    expect(site.visits.map(({ path }) => path)).toEqual(["/token"])
  })
})

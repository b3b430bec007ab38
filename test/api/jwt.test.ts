/** Svix's tokens, for those who come from there. */
import { exportSPKI, generateKeyPair, SignJWT } from "jose"
import { expect, test } from "vitest"
import { type JwtSettings, tokenReader } from "../../src/api/jwt.ts"
import { systemClock } from "../../src/core/clock.ts"
import { DEFAULT_ORG } from "../../src/core/org.ts"
import { probeRoutes } from "./support/probe.ts"
import { ApiServer } from "./support/server.ts"

const SECRET = "x".repeat(32)
const secret = (text: string) => new TextEncoder().encode(text)

async function start(settings: JwtSettings = { secret: SECRET, algorithm: "HS256" }) {
  const readToken = await tokenReader(settings, systemClock())
  const server = await ApiServer.start({ routes: [probeRoutes()], readToken })
  const acme = await server.posthorn.applications.create({ uid: "acme", name: "Acme" })
  return { server, acme }
}

function sign(claims: object, { key = secret(SECRET), alg = "HS256", expires = "1h", from = "0s" } = {}) {
  const token = new SignJWT({ iss: "svix-server", ...claims }).setProtectedHeader({ alg, typ: "JWT" })
  return token
    .setIssuedAt()
    .setNotBefore(from)
    .setExpirationTime(expires)
    .sign(key as never)
}

test("an organization's token is an admin's, and any organization is a tenant of its own", async () => {
  const { server } = await start()
  const key = await sign({ sub: DEFAULT_ORG })
  expect(await server.call("GET", "/app/acme", { key })).toMatchObject({ status: 200, body: { by: null } })
  expect(await server.call("POST", "/app", { key, body: { name: "x" } })).toMatchObject({ status: 201 })
  const other = await sign({ sub: "org_2TestTestTestTestTestTestTe" })
  expect(await server.call("GET", "/app/acme", { key: other })).toMatchObject({ status: 404 })
  expect((await server.call("GET", "/app", { key: other })).body.data).toHaveLength(1)
})

test("an application's token reaches that application", async () => {
  const { server, acme } = await start()
  const key = await sign({ sub: acme.id, org: DEFAULT_ORG })
  expect(await server.call("GET", "/app/acme", { key })).toMatchObject({ status: 200 })
  expect(await server.call("GET", "/app", { key })).toMatchObject({ status: 403 })
  const other = await sign({ sub: "app_2TestTestTestTestTestTestTe", org: DEFAULT_ORG })
  expect(await server.call("GET", "/app/acme", { key: other })).toMatchObject({ status: 404 })
})

test("a token opens no session, neither itself nor by a link: its session would outlive it", async () => {
  const readToken = await tokenReader({ secret: SECRET, algorithm: "HS256" }, systemClock())
  const server = await ApiServer.start({ readToken })
  const key = await sign({ sub: DEFAULT_ORG })
  const link = await server.call("POST", "/auth/dashboard-link", { key, body: {} })
  const session = await server.call("POST", "/auth/session", { key: null, body: { key, cookie: false } })
  for (const answer of [link, session])
    expect(answer).toMatchObject({ status: 403, body: { detail: expect.stringContaining("not a JWT") } })
})

test("keys go on being keys", async () => {
  const { server } = await start()
  expect(await server.call("GET", "/app/acme")).toMatchObject({ status: 200 })
})

test("a token that is expired, not yet valid, unsigned, signed otherwise or without a subject is refused", async () => {
  const { server, acme } = await start()
  const none = (claims: object) =>
    [{ alg: "none" }, claims].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".")
  for (const [key, detail] of [
    [await sign({ sub: DEFAULT_ORG }, { expires: "-1m" }), "The token has expired"],
    [await sign({ sub: DEFAULT_ORG }, { from: "1m" }), "Invalid token"],
    [await sign({ sub: DEFAULT_ORG }, { key: secret("y".repeat(32)) }), "Invalid token"],
    [await sign({ sub: DEFAULT_ORG }, { alg: "HS512", key: secret("x".repeat(64)) }), "Invalid token"],
    [`${none({ sub: DEFAULT_ORG })}.`, "Invalid token"],
    [`${none({ sub: DEFAULT_ORG })}.x`, "Invalid token"],
    [await sign({ sub: "user_1" }), "Invalid token: it names no organization"],
    [await sign({ sub: acme.id }), "Invalid token: it names no organization"],
    [await sign({ sub: acme.id, org: "acme" }), "Invalid token: it names no organization"],
    [SECRET, "Invalid token"],
  ] as const)
    expect(await server.call("GET", "/app/acme", { key })).toMatchObject({
      status: 401,
      body: { code: "authentication_failed", detail },
    })
})

test("with a public key, tokens of its owner are read", async () => {
  const { publicKey, privateKey } = await generateKeyPair("EdDSA", { extractable: true })
  const { server } = await start({ secret: await exportSPKI(publicKey), algorithm: "EdDSA" })
  const key = await sign({ sub: DEFAULT_ORG }, { key: privateKey as never, alg: "EdDSA" })
  expect(await server.call("GET", "/app/acme", { key })).toMatchObject({ status: 200 })
  const forged = await sign({ sub: DEFAULT_ORG }, { key: secret(await exportSPKI(publicKey)) })
  expect(await server.call("GET", "/app/acme", { key: forged })).toMatchObject({ status: 401 })
})

test("a public key that is none is refused at the start", async () => {
  await expect(tokenReader({ secret: "nonsense", algorithm: "RS256" }, systemClock())).rejects.toMatchObject({
    code: "invalid_input",
    field: "jwtSecret",
  })
})

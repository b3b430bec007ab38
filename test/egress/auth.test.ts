/** Credentials of endpoints: basic, bearer and OAuth 2.0 client credentials, which are never shown. */
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, test } from "vitest"
import { Harness } from "../support/harness.ts"
import { Authority } from "./certificates.ts"

test("basic auth is sent as its header", async () => {
  const harness = await Harness.start()
  await harness.endpoint({ auth: { type: "basic", username: "acme", password: "s3cret: and more" } })
  await harness.send()
  const [received] = await harness.receiver.arrived("/", 1)
  expect(received?.headers.authorization).toBe(`Basic ${btoa("acme:s3cret: and more")}`)
})

test("an API key may be a user name without a password", async () => {
  const harness = await Harness.start()
  await harness.endpoint({ auth: { type: "basic", username: "key_1", password: "" } })
  await harness.send()
  const [received] = await harness.receiver.arrived("/", 1)
  expect(received?.headers.authorization).toBe(`Basic ${btoa("key_1:")}`)
})

test("a bearer token is sent as its header, before one among the endpoint's own headers", async () => {
  const harness = await Harness.start()
  const headers = { Authorization: "Custom", "X-Tenant": "7" }
  const id = await harness.endpoint({ auth: { type: "bearer", token: "tok_1" }, headers })
  await harness.send()
  const [first] = await harness.receiver.arrived("/", 1)
  expect(first?.headers).toMatchObject({ authorization: "Bearer tok_1", "x-tenant": "7" })
  await harness.posthorn.endpoints.update("acme", id, { auth: { type: "bearer", token: "tok_2" } })
  await harness.send()
  expect((await harness.receiver.arrived("/", 2))[1]?.headers.authorization).toBe("Bearer tok_2")
  await harness.posthorn.endpoints.update("acme", id, { auth: null })
  await harness.send()
  expect((await harness.receiver.arrived("/", 3))[2]?.headers.authorization).toBe("Custom")
})

test("a change of something else keeps the auth, and so does a new signing secret", async () => {
  const harness = await Harness.start()
  const id = await harness.endpoint({ auth: { type: "bearer", token: "tok_1" } })
  await harness.posthorn.endpoints.update("acme", id, { description: "changed" })
  await harness.posthorn.endpoints.rotateSecret("acme", id)
  await harness.send()
  const [received] = await harness.receiver.arrived("/", 1)
  expect(received?.headers.authorization).toBe("Bearer tok_1")
})

test("secrets are neither readable in the file nor shown again", async () => {
  const harness = await Harness.start()
  const authority = new Authority()
  const client = authority.certificate("acme", { names: "DNS:acme.example" })
  const oauth = { type: "oauth2", tokenUrl: harness.receiver.url("/token"), clientId: "client_77" } as const
  const auths = [
    { type: "basic", username: "acme", password: "password_77" },
    { type: "bearer", token: "bearer_77" },
    { ...oauth, clientSecret: "secret_77" },
  ] as const
  const shown: unknown[] = []
  for (const auth of auths) {
    const id = await harness.endpoint({ auth, tls: client })
    shown.push(await harness.posthorn.endpoints.get("acme", id))
    shown.push(await harness.posthorn.endpoints.update("acme", id, { description: "seen" }))
  }
  shown.push(await harness.posthorn.endpoints.list("acme"))
  await harness.send()
  await harness.published("delivery.attempt", 3)
  const keyLine = client.key.split("\n")[1]!
  const hidden = ["password_77", "bearer_77", "secret_77", keyLine]
  for (const secret of hidden) expect(JSON.stringify(shown)).not.toContain(secret)
  const folder = dirname(harness.file)
  const files = readdirSync(folder).filter((name) => name.startsWith("posthorn.db"))
  const bytes = files.map((name) => readFileSync(join(folder, name), "latin1")).join("")
  expect(bytes).toContain(harness.receiver.url("/"))
  for (const secret of hidden) expect(bytes).not.toContain(secret)
})

describe("credentials that make no sense are refused with the name of the field", () => {
  const oauth = { type: "oauth2", tokenUrl: "https://127.0.0.1/token", clientId: "a", clientSecret: "b" }
  test.each<[string, string, unknown]>([
    ["no object", "auth", "Basic abc"],
    ["no type", "auth.type", {}],
    ["another type", "auth.type", { type: "digest" }],
    ["no user name", "auth.username", { type: "basic", password: "p" }],
    ["a colon in the user name", "auth.username", { type: "basic", username: "a:b", password: "p" }],
    ["an empty user name", "auth.username", { type: "basic", username: "", password: "p" }],
    ["no password", "auth.password", { type: "basic", username: "a" }],
    ["an empty token", "auth.token", { type: "bearer", token: "" }],
    [
      "a line break in the password",
      "auth.password",
      { type: "basic", username: "a", password: "p\r\nx: y" },
    ],
    ["a line break in the token", "auth.token", { type: "bearer", token: "t\r\nx: y" }],
    ["a token that is no text", "auth.token", { type: "bearer", token: 7 }],
    ["a field of another type", "auth.username", { type: "bearer", token: "t", username: "u" }],
    ["no token URL", "auth.tokenUrl", { ...oauth, tokenUrl: undefined }],
    ["a token URL that is none", "auth.tokenUrl", { ...oauth, tokenUrl: "file:///etc/passwd" }],
    ["a closed token URL", "auth.tokenUrl", { ...oauth, tokenUrl: "http://169.254.169.254/token" }],
    ["a token URL with a login", "auth.tokenUrl", { ...oauth, tokenUrl: "http://a:b@127.0.0.1/token" }],
    ["no client id", "auth.clientId", { ...oauth, clientId: undefined }],
    ["an empty client secret", "auth.clientSecret", { ...oauth, clientSecret: "" }],
    ["a scope that is no text", "auth.scope", { ...oauth, scope: ["a"] }],
  ])("%s", async (_what, field, auth) => {
    const harness = await Harness.start()
    await expect(harness.endpoint({ auth: auth as never })).rejects.toMatchObject({
      code: "invalid_input",
      field,
    })
    expect(await harness.sql("SELECT id FROM endpoints")).toEqual([])
  })
})

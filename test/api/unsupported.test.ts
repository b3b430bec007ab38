/** Every call of Svix's client has an answer in JSON; calls that Posthorn does not support say so. */
import { readFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import { expect, test } from "vitest"
import { fetchChecked } from "./support/checked.ts"
import { refusal, svixFor } from "./support/sdk.ts"
import { ApiServer } from "./support/server.ts"

interface Operation {
  readonly method: string
  readonly path: string
}

/** Every request that the client can make, from its own text. */
async function operationsOfTheClient(): Promise<Operation[]> {
  const text = await readFile(fileURLToPath(import.meta.resolve("svix")), "utf8")
  const found = text.matchAll(/new SvixRequest\("(?<method>[A-Z]+)", "(?<path>[^"]+)"/g)
  return [...found].map(({ groups }) => groups as unknown as Operation)
}

/** By what their paths are about. */
const LEFT_OUT =
  /transformation|connector|integration|\/stream|stream-|destination|poller|polling|ingest|auto-?config/

test("every call of the client is known: it works, or is answered with 501 and what to do instead", async () => {
  const server = await ApiServer.start({ options: { deliver: false } })
  const operations = await operationsOfTheClient()
  expect(operations.length).toBeGreaterThan(120)
  for (const { method, path } of operations) {
    const response = await fetchChecked(server.contract)(
      `${server.url}${path.replace(/\{\w+\}/g, "nobody")}`,
      {
        method,
        headers: { authorization: `Bearer ${server.key}`, "idempotency-key": crypto.randomUUID() },
      },
    )
    const text = await response.text()
    const told = `${method} ${path}: ${response.status} ${text}`
    if (LEFT_OUT.test(path)) {
      expect(response.status, told).toBe(501)
      expect(JSON.parse(text), told).toEqual({
        code: "not_implemented",
        detail: expect.stringMatching(/^Posthorn does not have .+: .+/),
      })
    } else {
      expect(response.status, told).toBeLessThan(500)
      expect(response.status, told).not.toBe(405)
      expect(text, told).not.toContain(`there is no ${method}`)
    }
  }
})

test.each([
  ["GET", "/api/v1/app/a/endpoint/e/oauth", /auth and tls/],
  ["PUT", "/api/v1/app/a/endpoint/e/mtls", /auth and tls/],
  ["GET", "/api/v1/app/a/msg/m/raw", /get the message/],
  ["POST", "/api/v1/app/a/msg/search", /event type, channel, tag/],
  ["PATCH", "/api/v1/app/a/alert-email", /operational webhook/],
  ["POST", "/ingest/api/v1/source", /create a source, POST \/app/],
  ["GET", "/api/v1/management/environment", /POST \/key/],
  ["POST", "/api/v1/auth/app/a/mcp-token", /POST \/key/],
  ["PUT", "/api/v1/event-type/t/retry-schedule", /set retry/],
  ["POST", "/api/v1/event-type/export/openapi/", /environment\/export/],
  ["POST", "/api/v1/msg/broadcast?x=1", /GET \/app/],
])("%s %s says what to do instead", async (method, path, instead) => {
  const server = await ApiServer.start({ options: { deliver: false } })
  const response = await fetchChecked(server.contract)(server.url + path, {
    method,
    headers: { authorization: `Bearer ${server.key}` },
  })
  expect(response.status).toBe(501)
  expect(((await response.json()) as { detail: string }).detail).toMatch(instead)
})

test("strangers are not told, portals are, and what nobody knows is still not there", async () => {
  const server = await ApiServer.start({ options: { deliver: false } })
  await server.posthorn.applications.create({ uid: "acme", name: "Acme" })
  const { token } = await server.posthorn.keys.create({ name: "x", scope: "application", appId: "acme" })
  const status = async (path: string, key: string | null) => (await server.call("GET", path, { key })).status
  expect(await status("/stream", null)).toBe(401)
  expect(await status("/stream", "nonsense")).toBe(401)
  expect(await status("/app/acme/integration", token)).toBe(501)
  for (const path of ["/streams", "/connectors/x", "/app/acme/transformation", "/nothing"])
    for (const key of [null, token]) expect(await status(path, key)).toBe(404)
  const headers = { "idempotency-key": "once" }
  expect((await server.call("POST", "/nothing", { headers })).status).toBe(404)
  expect((await server.call("POST", "/health", { headers })).status).toBe(405)
})

test("the client tells it as any other refusal", async () => {
  const server = await ApiServer.start({ options: { deliver: false } })
  const { status, body } = await refusal(svixFor(server).integration.list("acme"))
  // The client leaves the body of every 5xx as it is.
  expect([status, JSON.parse(body as string)]).toMatchObject([501, { code: "not_implemented" }])
})

test("the OpenAPI document says it in a sentence, and lists none of them", async () => {
  const server = await ApiServer.start({ options: { deliver: false } })
  const { body } = await server.call("GET", "/openapi.json")
  expect(body.info.description).toContain("501")
  expect(Object.keys(body.paths).filter((path) => LEFT_OUT.test(path))).toEqual([])
})

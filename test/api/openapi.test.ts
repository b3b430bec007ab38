/** The document that describes the API, and the page made from it. */
import { expect, test } from "vitest"
import { probeRoutes } from "./support/probe.ts"
import { ApiServer } from "./support/server.ts"

const read = async (server: ApiServer) =>
  (await (await fetch(`${server.url}/api/v1/openapi.json`)).json()) as {
    openapi: string
    // biome-ignore lint/suspicious/noExplicitAny: a document without a type
    paths: { [path: string]: { [method: string]: any } }
    components: { schemas: { [name: string]: unknown }; securitySchemes: object }
  }

test("every route is in it, with its names, its errors and its key", async () => {
  const server = await ApiServer.start({ routes: [probeRoutes()], publicUrl: "https://hooks.example.com" })
  const document = await read(server)
  expect(document).toMatchObject({ openapi: "3.1.0", servers: [{ url: "https://hooks.example.com" }] })
  const create = document.paths["/api/v1/app"]!.post
  expect(create).toMatchObject({
    operationId: "probe.create",
    requestBody: { content: { "application/json": { schema: { $ref: "#/components/schemas/AppIn" } } } },
    parameters: [{ in: "header", name: "idempotency-key", required: false }],
  })
  expect(Object.keys(create.responses)).toEqual([
    "201",
    "400",
    "401",
    "403",
    "409",
    "413",
    "415",
    "422",
    "429",
    "500",
    "503",
  ])
  expect(create.responses).toMatchObject({
    201: {
      description: "Created",
      content: { "application/json": { schema: { $ref: "#/components/schemas/AppOut" } } },
    },
    422: {
      content: { "application/json": { schema: { $ref: "#/components/schemas/HTTPValidationError" } } },
    },
  })
  const { get } = document.paths["/api/v1/app/{app_id}"]!
  expect(get.parameters).toMatchObject([{ in: "path", name: "app_id", required: true }])
  expect(Object.keys(get.responses)).toContain("404")
  const open = document.paths["/api/v1/wait"]!.get
  expect(open.security).toEqual([])
  expect(Object.keys(open.responses)).not.toContain("401")
})

test("the document is at both places where clients look for it, as plain JSON", async () => {
  const server = await ApiServer.start({ routes: [probeRoutes()] })
  const texts = await Promise.all(
    ["/openapi.json", "/api/v1/openapi.json"].map(async (path) => {
      const response = await fetch(server.url + path)
      expect([response.status, response.headers.get("content-type")]).toEqual([200, "application/json"])
      return response.text()
    }),
  )
  expect(texts[0]).toBe(texts[1])
})

test("every schema that the document refers to is in it, and no other", async () => {
  const server = await ApiServer.start()
  const document = await read(server)
  const text = JSON.stringify(document)
  const names = new Set([...text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map(([, name]) => name))
  expect([...names].sort()).toEqual(Object.keys(document.components.schemas).sort())
  expect(text).not.toMatch(/x-component|x-shown|\$id|def-\d/)
  const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods))
  const ids = operations.map(({ operationId }) => operationId)
  expect(new Set(ids).size).toBe(ids.length)
  expect(operations.every(({ summary, tags }) => summary && tags?.length === 1)).toBe(true)
})

test("a policy is described field by field, and every policy that is given fits the description", async () => {
  const server = await ApiServer.start()
  const { PolicyIn, PolicyOut } = (await read(server)).components.schemas as {
    [name: string]: { properties: { [field: string]: object } }
  }
  const { body: mistake } = await server.call("PUT", "/retry-policy/quick", { body: { known: true } })
  const known = mistake.detail[0].msg.match(/known are (.*)$/)[1].split(", ")
  expect(Object.keys(PolicyIn!.properties).sort()).toEqual(known.sort())
  const { body } = await server.call("GET", "/retry-policy")
  const given = new Set(body.data.flatMap(({ policy }: { policy: object }) => Object.keys(policy)))
  expect(Object.keys(PolicyOut!.properties).sort()).toEqual([...given].sort())
})

test("an answer that it does not describe fails the test that got it", async () => {
  const contract = await (await ApiServer.start()).contract
  const answer = (status: number, body: unknown) => {
    return { status, type: "application/json", text: JSON.stringify(body) }
  }
  const problem = { code: "not_found", detail: "there is no such thing" }
  contract.check("GET", "/api/v1/nowhere", answer(404, problem))
  contract.check("GET", "/docs", { status: 200, type: "text/html", text: "<!doctype html>" })
  for (const [method, path, given] of [
    ["GET", "/api/v1/nowhere", answer(200, {})],
    ["GET", "/api/v1/nowhere", answer(500, problem)],
    ["GET", "/api/v1/nowhere", answer(404, {})],
    ["PUT", "/api/v1/app", answer(200, {})],
    ["GET", "/api/v1/app", answer(418, problem)],
    ["GET", "/api/v1/app", answer(200, { data: [] })],
    ["GET", "/docs", answer(500, problem)],
  ] as const)
    expect(() => contract.check(method, path, given), `${method} ${path} ${given.status}`).toThrow()
})

test("the page shows every operation and schema, runs nothing and loads nothing", async () => {
  const server = await ApiServer.start()
  const { paths, components } = await read(server)
  const response = await fetch(`${server.url}/docs`)
  expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8")
  expect(response.headers.get("content-security-policy")).toContain("default-src 'none'")
  const page = await response.text()
  expect(page).not.toMatch(/<script|<link|src=/)
  for (const [path, methods] of Object.entries(paths)) {
    expect(page).toContain(path)
    for (const { operationId } of Object.values(methods)) expect(page).toContain(`id="${operationId}"`)
  }
  for (const name of Object.keys(components.schemas)) expect(page).toContain(`id="${name}"`)
  expect(page).not.toMatch(/<[^>]+ on\w+=/)
  const anchors = [...page.matchAll(/href="(?:\/docs)?#([^"]+)"/g)].map(([, anchor]) => anchor)
  for (const anchor of anchors) expect(page).toContain(`id="${anchor}"`)
})

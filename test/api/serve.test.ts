/** `posthorn serve` and `posthorn config` as they are typed, in processes of their own. */
import { execFile } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { promisify } from "node:util"
import { expect, onTestFinished, test } from "vitest"
import { temporaryFolder } from "../support/harness.ts"
import type { Program } from "../support/process.ts"
import { freshDatabase } from "../support/servers/postgres.ts"
import { apiContract, fetchChecked } from "./support/checked.ts"
import { addressOf, type Environment, serve, start } from "./support/serving.ts"

const KEY = /ph_\w{16}_\w{40}/

async function run(args: readonly string[], environment?: Environment, folder?: string) {
  const program = start(args, environment, folder)
  const { code } = await program.ended
  return { code, stdout: program.lines.join("\n"), stderr: program.stderr }
}

const fetched = fetchChecked(await apiContract())

const asks = (address: string, key: string) =>
  fetched(`${address}/api/v1/app`, { headers: { authorization: `Bearer ${key}` } })

test("the first start prints a key once, and curls that lead to a delivery as pasted", async () => {
  const folder = temporaryFolder()
  const first = serve([], {}, folder)
  const address = await addressOf(first)
  const printed = first.lines.join("\n")
  const lines = first.lines.filter((line) => /^ {2}(KEY=|curl )/.test(line))
  expect(lines).toHaveLength(5)
  const pasted = lines.map((line) => (line.includes("curl ") ? `${line} -s -w ' %{http_code}\\n'` : line))
  const { stdout } = await promisify(execFile)("sh", ["-c", pasted.join("\n")])
  const [application, endpoint, message, attempts] = stdout.trim().split("\n")
  expect(application).toMatch(/"uid":"acme".* 201$/)
  expect(endpoint).toMatch(/"uid":"main".* 201$/)
  expect(message).toMatch(/"matched":1.* 202$/)
  expect(attempts).toMatch(/^\{"data":\[.* 200$/)
  expect(printed).toContain(`${address}/docs`)
  expect(first.stderr).not.toMatch(KEY)
  first.process.kill("SIGTERM")
  expect(await first.ended).toEqual({ code: 0, signal: null })

  const [key] = KEY.exec(printed)!
  const second = serve([], {}, folder)
  expect((await asks(await addressOf(second), key)).status).toBe(200)
  expect(second.lines).toEqual([])
  expect(existsSync(join(folder, "data", "posthorn.db"))).toBe(true)
})

test("the first start says how to allow a local receiver, and the API says it with the same name", async () => {
  const first = serve([], { npm_lifecycle_event: "start" })
  const address = await addressOf(first)
  const printed = first.lines.join("\n")
  expect(printed).toContain("POSTHORN_EGRESS_ALLOW=127.0.0.0/8 npm start")
  const post = async (path: string, body: object) => {
    const headers = { authorization: `Bearer ${KEY.exec(printed)![0]}`, "content-type": "application/json" }
    const request = { method: "POST", headers, body: JSON.stringify(body) }
    return (await fetched(`${address}/api/v1${path}`, request)).text()
  }
  await post("/app", { name: "Acme", uid: "acme" })
  expect(await post("/app/acme/endpoint", { url: "http://localhost:3000/" })).toContain(
    "unless egress.allow or POSTHORN_EGRESS_ALLOW opens 127.0.0.0/8",
  )
  const opened = serve([], { POSTHORN_EGRESS_ALLOW: "127.0.0.0/8" })
  await addressOf(opened)
  expect(opened.lines.join("\n")).not.toContain("POSTHORN_EGRESS_ALLOW")
})

test("POSTHORN_API_KEY is used instead, and nothing is printed", async () => {
  const folder = temporaryFolder()
  const key = "a-key-from-the-operators-vault"
  const program = serve([], { POSTHORN_API_KEY: key }, folder)
  const address = await addressOf(program)
  expect((await asks(address, key)).status).toBe(200)
  expect((await asks(address, `${key}x`)).status).toBe(401)
  expect(program.lines).toEqual([])
  program.process.kill("SIGINT")
  expect(await program.ended).toEqual({ code: 0, signal: null })
  const again = serve([], { POSTHORN_API_KEY: key }, folder)
  expect((await asks(await addressOf(again), key)).status).toBe(200)
})

test("on PostgreSQL too, beside workers", async () => {
  const store = await freshDatabase()
  const servers = [
    serve(["--no-deliver"], { POSTHORN_STORE: store }),
    serve(["--no-deliver", "--store", store]),
  ]
  const [key] = KEY.exec((await Promise.any(servers.map((server) => server.line(KEY))))!)!
  for (const server of servers) expect((await asks(await addressOf(server), key)).status).toBe(200)
})

test("the log has a line for each request, and no key", async () => {
  const key = "a-key-from-the-operators-vault"
  const program = serve(["--log-level", "info"], { POSTHORN_API_KEY: key })
  const address = await addressOf(program)
  await fetched(`${address}/api/v1/app`, {
    headers: { authorization: `Bearer ${key}`, "svix-req-id": "my-id" },
  })
  const line = JSON.parse(await program.line(/"requestId":"my-id"/))
  expect(line).toMatchObject({ method: "GET", url: "/api/v1/app", status: 200, msg: "request" })
  expect(line.key).toMatch(/^\w{16}$/)
  expect(program.stderr).not.toContain(key)
})

test("after a crash the same idempotency key gets the same answer", async () => {
  const folder = temporaryFolder()
  const key = "a-key-from-the-operators-vault"
  const create = async (program: Program, name: string) => {
    const response = await fetched(`${await addressOf(program)}/api/v1/app`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        "idempotency-key": "once",
      },
      body: JSON.stringify({ name }),
    })
    return { status: response.status, text: await response.text() }
  }
  const first = serve([], { POSTHORN_API_KEY: key }, folder)
  const answer = await create(first, "Acme")
  expect(answer.status).toBe(201)
  await first.kill()
  const second = serve([], { POSTHORN_API_KEY: key }, folder)
  expect(await create(second, "Acme")).toEqual(answer)
  expect(await create(second, "Globex")).toMatchObject({ status: 409 })
})

/** One sentence on standard error that ends the line, and no stack. */
async function refused(
  code: number,
  sentence: RegExp,
  args: readonly string[],
  environment?: Environment,
  folder?: string,
) {
  const result = await run(args, environment, folder)
  expect(result).toEqual({ code, stdout: "", stderr: expect.stringMatching(sentence) })
  expect(result.stderr.trimEnd()).not.toContain("\n")
  return result
}

test("a port that is taken, and the key is not lost with it", async () => {
  const server = createServer().listen(0)
  onTestFinished(() => void server.close())
  const { port } = server.address() as { port: number }
  const folder = temporaryFolder()
  const sentence = new RegExp(
    `^posthorn: port ${port} is taken by another program; choose another with PORT$`,
    "m",
  )
  await refused(1, sentence, ["serve"], { PORT: String(port) }, folder)
  const free = serve([], {}, folder)
  await addressOf(free)
  expect(free.lines.join("\n")).toMatch(KEY)
})

test("an address that is not of this machine", () =>
  refused(
    1,
    /^posthorn: --host must be an address of this machine, and 192\.0\.2\.77 is none$/m,
    ["serve", "--host", "192.0.2.77"],
    { POSTHORN_API_KEY: "x".repeat(24) },
  ))

test("a folder that cannot be written", async () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, "data"), "a file where the folder should be")
  await refused(1, /^posthorn: .*data\/posthorn\.db.*\n$/, ["serve"], {}, folder)
  if (process.getuid?.() === 0) return
  const closed = join(folder, "closed")
  mkdirSync(closed)
  chmodSync(closed, 0o500)
  await refused(1, /^posthorn: .*posthorn\.db.*\n$/, ["serve"], {}, closed)
})

test("a store that another server has", async () => {
  const folder = temporaryFolder()
  await addressOf(serve([], {}, folder))
  await refused(1, /^posthorn: .* is in use by another Posthorn .*\n$/, ["serve"], {}, folder)
})

test.each<[readonly string[], Environment, RegExp]>([
  [["--prot", "1"], {}, /^posthorn: unknown flag --prot; did you mean --port\?\n$/],
  [["--port", "http"], {}, /^posthorn: --port must be a whole number, not "http"\n$/],
  [[], { PORT: "65536" }, /^posthorn: PORT must be a whole number between 0 and 65535\n$/],
  [[], { POSTHORN_API_KEY: "hunter2" }, /^posthorn: POSTHORN_API_KEY must be ph_/],
  [[], { POSTHORN_API_KEY: "ph_short_hunter2" }, /^posthorn: POSTHORN_API_KEY must be ph_/],
  [[], { POSTHORN_ENCRYPTION_KEY: "hunter2" }, /^posthorn: POSTHORN_ENCRYPTION_KEY must be 32 bytes/],
  [
    [],
    { POSTHORN_JWT_SECRET: "hunter2".repeat(4) },
    /^posthorn: POSTHORN_JWT_SECRET must be at least 32 bytes of text for HS256\n$/,
  ],
  [
    [],
    { POSTHORN_JWT_SECRET: "hunter2", POSTHORN_JWT_ALGORITHM: "RS256" },
    /^posthorn: POSTHORN_JWT_SECRET must be a public key/,
  ],
  [["--concurrency", "0"], {}, /^posthorn: --concurrency must be a whole number between 1 and 1000\n$/],
  [["--egress-allow", "everything"], {}, /^posthorn: --egress-allow /],
  [["--store", "mysql://x"], {}, /^posthorn: --store must be /],
  [["--config", "missing.json"], {}, /^posthorn: the configuration missing.json cannot be read: /],
])("serve %j with %j is refused with one sentence", async (args, environment, sentence) => {
  const { stderr } = await refused(2, sentence, ["serve", ...args], environment)
  expect(stderr).not.toContain("hunter2")
})

test("an API key that was revoked is not taken again", async () => {
  const folder = temporaryFolder()
  const key = "a-key-from-the-operators-vault"
  const store = `sqlite:${join(folder, "data", "posthorn.db")}`
  const program = serve([], { POSTHORN_API_KEY: key }, folder)
  await addressOf(program)
  program.process.kill("SIGTERM")
  await program.ended
  const { openPosthorn } = await import("../../src/index.ts")
  const posthorn = await openPosthorn({ store, deliver: false, logger: "silent" })
  for (const { id } of (await posthorn.keys.list()).data) await posthorn.keys.revoke(id)
  await posthorn.close()
  await refused(
    2,
    /^posthorn: POSTHORN_API_KEY was revoked on .*; choose another\n$/,
    ["serve"],
    {
      POSTHORN_API_KEY: key,
    },
    folder,
  )
})

test("nor is one that has expired; one that will be revoked still is", async () => {
  const folder = temporaryFolder()
  const store = `sqlite:${join(folder, "data", "posthorn.db")}`
  mkdirSync(join(folder, "data"))
  const [expired, ending] = ["an-expired-key-from-the-vault", "a-key-that-is-about-to-end"]
  const { openPosthorn } = await import("../../src/index.ts")
  const posthorn = await openPosthorn({ store, deliver: false, logger: "silent" })
  const input = { name: "vault", scope: "admin" } as const
  const expiresAt = Date.now() + 1000
  await posthorn.keys.adopt(expired, { ...input, expiresAt })
  const { id } = await posthorn.keys.adopt(ending, input)
  await posthorn.keys.revoke(id, { inSeconds: 3600 })
  await posthorn.close()
  await expect.poll(() => Date.now(), { timeout: 5000 }).toBeGreaterThan(expiresAt)
  const sentence = /^posthorn: POSTHORN_API_KEY expired on .*; choose another\n$/
  await refused(2, sentence, ["serve"], { POSTHORN_API_KEY: expired }, folder)
  const program = serve([], { POSTHORN_API_KEY: ending }, folder)
  expect((await asks(await addressOf(program), ending)).status).toBe(200)
})

test("a second signal ends it at once", async () => {
  const program = serve()
  const address = await addressOf(program)
  const hanging = new AbortController()
  onTestFinished(() => hanging.abort())
  const body = new ReadableStream({ start: (stream) => stream.enqueue(new TextEncoder().encode("{")) })
  const [key] = KEY.exec(program.lines.join("\n"))!
  void fetch(`${address}/api/v1/app`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body,
    duplex: "half",
    signal: hanging.signal,
  } as RequestInit).catch(() => {})
  await asks(address, key)
  program.process.kill("SIGTERM")
  await program.line(/got SIGTERM/)
  program.process.kill("SIGTERM")
  expect(await program.ended).toEqual({ code: 143, signal: null })
})

test("config prints what is in force and where from, and no secret", async () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, "posthorn.json"), '{"concurrency": 5, "egress": {"allow": ["10.0.0.0/8"]}}')
  const environment = {
    POSTHORN_STORE: "postgres://u:hunter2@db.example.com/posthorn",
    POSTHORN_API_KEY: "hunter2-hunter2-hunter2-hunter2",
    POSTHORN_JWT_SECRET: "hunter2",
    PORT: "80",
  }
  const json = await run(["config", "--json", "--host", "::1"], environment, folder)
  expect(json).toMatchObject({ code: 0, stderr: "" })
  expect(JSON.parse(json.stdout)).toMatchObject({
    port: { value: "80", source: "PORT" },
    host: { value: "::1", source: "--host" },
    store: { value: "postgres://u@db.example.com/posthorn", source: "POSTHORN_STORE" },
    apiKey: { value: "set", source: "POSTHORN_API_KEY" },
    jwtSecret: { value: "set", source: "POSTHORN_JWT_SECRET" },
    encryptionKey: { value: null, source: "default" },
    concurrency: { value: "5", source: "concurrency in posthorn.json" },
    "egress.allow": { value: "10.0.0.0/8", source: "egress.allow in posthorn.json" },
    maxInFlight: { value: "2048", source: "default" },
  })
  const table = await run(["config"], environment, folder)
  expect(table.stdout).toMatch(/^port +80 +PORT$/m)
  expect(table.stdout).toMatch(/^concurrency +5 +concurrency in posthorn.json$/m)
  expect(json.stdout + table.stdout).not.toContain("hunter2")
  await refused(2, /^posthorn: --concurrency must be a whole number between 1 and 1000$/m, [
    "config",
    "--concurrency",
    "5000",
  ])
})

test("--help tells of every setting", async () => {
  const { code, stdout } = await run(["serve", "--help"])
  expect(code).toBe(0)
  for (const name of [
    "--port",
    "--store",
    "--no-deliver",
    "--egress-allow",
    "POSTHORN_API_KEY",
    "POSTHORN_JWT_SECRET",
  ])
    expect(stdout).toContain(name)
  expect(stdout).not.toContain("--api-key")
})

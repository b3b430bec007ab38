/** `posthorn worker` as it is typed, in processes of its own, on real servers. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import pg from "pg"
import { beforeEach, expect, onTestFinished, test, vi } from "vitest"
import { openPosthorn, type Posthorn } from "../../src/index.ts"
import { MIGRATIONS } from "../../src/store/postgres/schema.ts"
import { programFile } from "../support/bundled.ts"
import { SEARCH_PATH } from "../support/ground.ts"
import { LOOPBACK, temporaryFolder } from "../support/harness.ts"
import { Program } from "../support/process.ts"
import { Receiver } from "../support/receiver.ts"
import { freshDatabase, ownPostgres } from "../support/servers/postgres.ts"
import { ownRedis } from "../support/servers/redis.ts"

const MAIN = programFile("posthorn")
const READY = /"msg":"worker \d+ delivers from/

beforeEach(() => {
  vi.stubEnv("POSTHORN_EGRESS_ALLOW", "127.0.0.0/8")
  vi.stubEnv("POSTHORN_EGRESS_PORTS", "any")
  return () => vi.unstubAllEnvs()
})

function start(...args: string[]): Program {
  const program = Program.start(MAIN, ["worker", ...args])
  onTestFinished(async () => void (await program.kill()))
  return program
}

async function run(...args: string[]) {
  const program = start(...args)
  const { code } = await program.ended
  return { code, stdout: program.lines.join("\n"), stderr: program.stderr }
}

/** A process that accepts and does not deliver, with one endpoint at a receiver. */
async function sender(store: string): Promise<{ posthorn: Posthorn; receiver: Receiver }> {
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  const posthorn = await openPosthorn({ store, deliver: false, logger: "silent", egress: LOOPBACK })
  onTestFinished(() => posthorn.close())
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  await posthorn.endpoints.create("acme", { url: receiver.url("/hook") })
  return { posthorn, receiver }
}

const send = (posthorn: Posthorn, n = 1) => posthorn.send("acme", { eventType: "a", payload: { n } })

async function query(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, options: SEARCH_PATH })
  await client.connect()
  await client.query(sql)
  await client.end()
}

/** The same server's URL with another user, password or database. */
function change(url: string, parts: { username?: string; password?: string; pathname?: string }): string {
  return Object.assign(new URL(url), parts).href
}

test("workers deliver what another process accepts, and say once where from, without the password", async () => {
  const store = await freshDatabase()
  const { posthorn, receiver } = await sender(store)
  const workers = [1, 2].map(() => start("--store", change(store, { password: "hunter2" })))
  for (const worker of workers) {
    const told = JSON.parse(await worker.line(READY))
    expect(told).toMatchObject({ store, schedule: store, pid: worker.process.pid })
    expect(told.msg).toBe(`worker ${worker.process.pid} delivers from ${store}, scheduled by ${store}`)
  }
  const sent = await Promise.all(Array.from({ length: 50 }, (_, n) => send(posthorn, n)))
  const arrived = await receiver.arrived("/hook", 50)
  expect(arrived.map(({ id }) => id).sort()).toEqual(sent.map(({ id }) => id).sort())
  for (const worker of workers) {
    worker.process.kill("SIGTERM")
    expect(await worker.ended).toEqual({ code: 0, signal: null })
    expect(worker.stderr).not.toContain("hunter2")
    expect(worker.lines).toEqual([])
  }
})

test.each([
  "SIGTERM",
  "SIGINT",
] as const)("%s lets the request in flight finish, and the exit code is 0", async (signal) => {
  const store = await freshDatabase()
  const { posthorn, receiver } = await sender(store)
  const answer = receiver.hold("/hook")
  const worker = start("--store", store)
  const { id } = await send(posthorn)
  await receiver.arrived("/hook", 1)
  worker.process.kill(signal)
  await worker.line(new RegExp(`got ${signal}`))
  answer(200)
  expect(await worker.ended).toEqual({ code: 0, signal: null })
  const { data } = await posthorn.deliveries.list({ message: id })
  expect(data).toMatchObject([{ status: "delivered", attemptCount: 1 }])
})

test("a second signal ends it at once, and another worker sends again what it had in hand", async () => {
  const store = await freshDatabase()
  const { posthorn, receiver } = await sender(store)
  receiver.queue("/hook", () => {})
  const worker = start("--store", store)
  const { id } = await send(posthorn)
  await receiver.arrived("/hook", 1)
  worker.process.kill("SIGTERM")
  await worker.line(/got SIGTERM/)
  worker.process.kill("SIGTERM")
  expect(await worker.ended).toEqual({ code: 143, signal: null })
  start("--store", store)
  expect(await receiver.arrived("/hook", 2)).toMatchObject([{ id }, { id }])
})

test("with Redis as the schedule it delivers, and names it", async () => {
  const store = await freshDatabase()
  const redis = await ownRedis()
  const { posthorn, receiver } = await sender(store)
  const worker = start("--store", store, "--schedule", redis.url)
  expect(JSON.parse(await worker.line(READY))).toMatchObject({ store, schedule: redis.url })
  await send(posthorn)
  await receiver.arrived("/hook", 1)
  worker.process.kill("SIGTERM")
  expect(await worker.ended).toEqual({ code: 0, signal: null })
})

test("the worker uses the schema that it is given", async () => {
  const store = await freshDatabase()
  const inSchema = `${store}?schema=red`
  const { posthorn, receiver } = await sender(inSchema)
  vi.stubEnv("POSTHORN_SCHEMA", "red")
  await start("--store", store).line(READY)
  await send(posthorn)
  await receiver.arrived("/hook", 1)
  expect(await run("--store", store, "--schema", "no good")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--schema must be a name"),
  })
})

test("on SQLite the worker is the one process that delivers", async () => {
  const store = `sqlite:${join(temporaryFolder(), "posthorn.db")}`
  const { posthorn, receiver } = await sender(store)
  await send(posthorn)
  const worker = start("--store", store)
  expect(JSON.parse(await worker.line(READY))).toMatchObject({ store, schedule: store })
  await receiver.arrived("/hook", 1)
  const second = await run("--store", store)
  expect(second).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^posthorn: .* is in use by another Posthorn .*\n$/),
  })
  worker.process.kill("SIGINT")
  expect(await worker.ended).toEqual({ code: 0, signal: null })
})

test("the store and the schedule come from the environment where no flag says, and the flag wins", async () => {
  const store = await freshDatabase()
  vi.stubEnv("POSTHORN_STORE", store)
  const worker = start("--concurrency", "5", "--max-in-flight", "10")
  expect(JSON.parse(await worker.line(READY))).toMatchObject({ store })
  worker.process.kill("SIGTERM")
  await worker.ended
  vi.stubEnv("POSTHORN_STORE", "postgres://127.0.0.1:1/none")
  await start("--store", store).line(READY)
})

test("silent is silent, and info tells of every delivery", async () => {
  const store = await freshDatabase()
  const { posthorn, receiver } = await sender(store)
  const loud = start("--store", store, "--log-level", "info")
  await loud.line(READY)
  await send(posthorn)
  await loud.line(/Webhook delivery completed/)
  loud.process.kill("SIGTERM")
  await loud.ended
  const silent = start("--store", store, "--log-level", "silent")
  await send(posthorn)
  await receiver.arrived("/hook", 2)
  silent.process.kill("SIGTERM")
  expect(await silent.ended).toMatchObject({ code: 0 })
  expect(silent.stderr).toBe("")
})

const SERVER = "postgres://posthorn:hunter2@127.0.0.1:1/none"
test.each([
  [[], "--store is missing: give it a URL such as postgres://user@host/database, or set POSTHORN_STORE"],
  [["--stroe", SERVER], "unknown flag --stroe; did you mean --store?"],
  [["--store", SERVER, "--concurrency", "many"], '--concurrency must be a whole number, not "many"'],
  [["--store", SERVER, "--concurrency", "0"], "--concurrency must be a whole number between 1 and 1000"],
  [
    ["--store", SERVER, "--max-in-flight", "1000000"],
    "--max-in-flight must be a whole number between 1 and 100000",
  ],
  [
    ["--store", SERVER, "--log-level", "wran"],
    '--log-level must be one of debug, info, warn, error, silent, not "wran"; did you mean warn?',
  ],
  [
    ["--store", "sqlite:a.db", "--schedule", "redis://127.0.0.1"],
    "--schedule cannot be given with SQLite: the one process that owns the file keeps it",
  ],
  [
    ["--store", SERVER, "--schedule", "memcached://127.0.0.1"],
    '--schedule must be the URL of a Redis server, such as "redis://localhost:6379"',
  ],
])("%j is refused with one sentence", async (args, sentence) => {
  expect(await run(...args)).toEqual({ code: 2, stdout: "", stderr: `posthorn: ${sentence}\n` })
})

test.each([
  "posthorn.db",
  "mysql://127.0.0.1/a",
  "postgres://user:pa#ss@127.0.0.1/a",
])("%s is no store, wherever it comes from", async (store) => {
  const { code, stderr } = await run("--store", store)
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: expect.stringMatching(/^posthorn: --store must be .*\n$/),
  })
  expect(stderr).not.toContain("pa#ss")
  vi.stubEnv("POSTHORN_STORE", store)
  expect((await run()).stderr).toMatch(/^posthorn: POSTHORN_STORE must be .*\n$/)
})

/** One sentence on standard error that ends the line, and no stack. */
async function expectRefused(sentence: RegExp, ...args: string[]): Promise<void> {
  const { code, stdout, stderr } = await run(...args)
  expect({ code, stdout, stderr }).toEqual({ code: 1, stdout: "", stderr: expect.stringMatching(sentence) })
  expect(stderr.trimEnd()).not.toContain("\n")
  expect(stderr).not.toContain("hunter2")
}

test("a server that is not there, and a database that is not there", async () => {
  await expectRefused(
    /^posthorn: cannot open postgres:\/\/posthorn@127\.0\.0\.1:1\/none: .*ECONNREFUSED/,
    "--store",
    SERVER,
  )
  const missing = change(await freshDatabase(), { pathname: "/missing", password: "hunter2" })
  await expectRefused(/\/missing: there is no such database; create it first$/m, "--store", missing)
})

test("a wrong password", async () => {
  const server = await ownPostgres()
  await query(server.url, "CREATE USER guarded PASSWORD 'right'")
  const rules = join(server.dataDirectory, "pg_hba.conf")
  writeFileSync(rules, `host all guarded 127.0.0.1/32 scram-sha-256\n${readFileSync(rules, "utf8")}`)
  await query(server.url, "SELECT pg_reload_conf()")
  const store = change(server.url, { username: "guarded", password: "hunter2" })
  await expectRefused(
    /^posthorn: cannot open postgres:\/\/guarded@.*: the password is wrong$/m,
    "--store",
    store,
  )
})

test("a user that may not create the schema", async () => {
  const store = await freshDatabase()
  const name = `guest_${new URL(store).pathname.slice(1)}`
  await query(store, `CREATE USER ${name}`)
  onTestFinished(() => query(process.env.POSTHORN_TEST_POSTGRES_URL!, `DROP USER ${name}`))
  const sentence = /grant it CREATE on the database, or make it the owner of the schema$/m
  await expectRefused(sentence, "--store", change(store, { username: name }))
})

test("a schema that is newer than the program", async () => {
  const store = await freshDatabase()
  await (await openPosthorn({ store, deliver: false })).close()
  await query(store, "INSERT INTO posthorn_migrations (number, additive) VALUES (99, false)")
  const sentence = new RegExp(
    `has schema 99, this program knows ${MIGRATIONS.length}: .* update this one$`,
    "m",
  )
  await expectRefused(sentence, "--store", store)
})

test("a server that takes no writes", async () => {
  const store = await freshDatabase()
  await (await openPosthorn({ store, deliver: false })).close()
  await query(
    store,
    `ALTER DATABASE ${new URL(store).pathname.slice(1)} SET default_transaction_read_only = on`,
  )
  await expectRefused(/^posthorn: .*read-only.* primary/, "--store", store)
})

test("a Redis that is not there, and one that throws keys away", async () => {
  const store = await freshDatabase()
  const none = "redis://:hunter2@127.0.0.1:1"
  await expectRefused(
    /^posthorn: cannot open redis:\/\/127\.0\.0\.1:1.*leave the schedule out$/m,
    "--store",
    store,
    "--schedule",
    none,
  )
  const redis = await ownRedis(["--maxmemory-policy", "allkeys-lru"])
  await expectRefused(/set maxmemory-policy to noeviction$/m, "--store", store, "--schedule", redis.url)
})

test("an egress setting that makes no sense", async () => {
  vi.stubEnv("POSTHORN_EGRESS_ALLOW", "everything")
  const { code, stderr } = await run("--store", "sqlite::memory:")
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: expect.stringMatching(/^posthorn: POSTHORN_EGRESS_ALLOW .*\n$/),
  })
})

test("--help says what it does, with examples", async () => {
  const { code, stdout } = await run("--help")
  expect(code).toBe(0)
  for (const flag of ["--store", "--schedule", "--concurrency", "--max-in-flight", "--log-level"])
    expect(stdout).toContain(flag)
  expect(stdout).toContain("posthorn worker --store postgres://")
})

/** `posthorn migrate` as it is typed: everything arrives, however often it is killed, and nothing but a mark is written into the old file. */
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import pg from "pg"
import { expect, onTestFinished, test } from "vitest"
import { revive } from "../../src/core/operate.ts"
import { DEFAULT_ORG } from "../../src/core/org.ts"
import { openPosthorn, type Posthorn, PosthornError, verifySignature } from "../../src/index.ts"
import {
  laneFetch,
  lanesOf,
  newest,
  ORG,
  OTHER_ORG,
  sample,
  settlement,
} from "../../src/store/conformance.ts"
import { openPostgresStore } from "../../src/store/postgres/store.ts"
import { MIGRATIONS } from "../../src/store/sqlite/schema.ts"
import { openSqliteStore } from "../../src/store/sqlite/store.ts"
import type { Store } from "../../src/store/store.ts"
import { programFile } from "../support/bundled.ts"
import { SEARCH_PATH } from "../support/ground.ts"
import { LOOPBACK, temporaryFolder } from "../support/harness.ts"
import { NOW } from "../support/postgres-store.ts"
import type { Ending } from "../support/process.ts"
import { Program } from "../support/process.ts"
import { freshDatabase } from "../support/servers/postgres.ts"
import { everything } from "./everything.ts"
import { BINARY, bytesOf, fullStore, IN_LINE, KEYED } from "./full-store.ts"

const MAIN = programFile("posthorn")
const PATIENCE_MS = 180_000

function start(...args: string[]): Program {
  const program = Program.start(MAIN, ["migrate", ...args])
  onTestFinished(async () => void (await program.kill()))
  return program
}

async function run(...args: string[]): Promise<Ending & { stdout: string; stderr: string }> {
  const program = start(...args)
  const ending = await program.ended
  return { ...ending, stdout: program.lines.join("\n"), stderr: program.stderr }
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, options: SEARCH_PATH })
  client.on("error", () => {})
  await client.connect()
  onTestFinished(() => client.end())
  return client
}

async function opened<S extends Store>(store: Promise<S>): Promise<S> {
  const open = await store
  onTestFinished(() => open.close())
  return open
}

async function openTarget(url: string): Promise<Posthorn> {
  const posthorn = await openPosthorn({ store: url, egress: LOOPBACK, logger: "silent", closeTimeoutMs: 0 })
  onTestFinished(() => posthorn.close())
  return posthorn
}

/** A small file: one application, one endpoint that is paused, so many messages that wait for it. */
async function smallStore(messages: number): Promise<string> {
  const file = join(temporaryFolder(), "posthorn.db")
  const posthorn = await openPosthorn({ store: `sqlite:${file}`, logger: "silent", egress: LOOPBACK })
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  await posthorn.endpoints.create("acme", { uid: "one", url: "http://127.0.0.1:9/" })
  await posthorn.endpoints.pause("acme", "one")
  for (let n = 0; n < messages; n++) await posthorn.send("acme", { eventType: "a", payload: { n } })
  await posthorn.close()
  return file
}

test("an endpoint that was held on SQLite can be held again on PostgreSQL, whose tokens begin at 1", async () => {
  const file = await smallStore(1)
  const db = new DatabaseSync(file)
  db.exec("UPDATE endpoints SET gate_token = 4294967297, gate_revision = 9, gate_epoch = 3")
  db.close()
  const url = await freshDatabase()
  expect(await run("--from", `sqlite:${file}`, "--to", url)).toMatchObject({ code: 0 })
  const client = await connect(url)
  const { rows } = await client.query("SELECT gate_token::int, gate_revision, gate_epoch FROM endpoints")
  expect(rows).toEqual([{ gate_token: 0, gate_revision: 0, gate_epoch: 3 }])
})

test("killed again and again, the move goes on and ends with everything in its place", {
  timeout: PATIENCE_MS,
}, async () => {
  const { file, receiver, keyedId, secret } = await fullStore()
  const before = bytesOf(file)
  const url = await freshDatabase()
  const client = await connect(url)
  const args = ["--from", `sqlite:${file}`, "--to", url]
  const journal = async () => {
    const { rows } = await client.query("SELECT value FROM meta WHERE key = 'migration'")
    return JSON.parse(rows[0].value)
  }

  for (const table of ["messages", "webhook_deliveries", "attempts"]) {
    const killed = start(...args)
    await killed.line(new RegExp(`^${table} `))
    expect(await killed.kill()).toMatchObject({ signal: "SIGKILL" })
    expect(await journal()).toMatchObject({ finishedAt: null })
    await expect(openPosthorn({ store: url, logger: "silent" })).rejects.toThrow(
      'run "posthorn migrate" again',
    )
  }
  // In the middle of a chunk: its rows are written, its progress is not.
  await client.query("BEGIN; LOCK TABLE lanes IN EXCLUSIVE MODE")
  const stuck = start(...args)
  await stuck.line(/^in_flight /)
  await waitsForLock(url)
  await stuck.kill()
  await client.query("COMMIT")
  const lastBefore = (await journal()).progress
  expect(bytesOf(file)).toEqual(before)

  const { code, stdout } = await run(...args)
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining("Moved.") })
  expect(stdout).toMatch(/^messages +(\d{4}) +\1$/m)
  expect(stdout).toMatch(/^in_flight +3 +3$/m)
  expect(Object.keys(lastBefore)).toEqual(
    expect.arrayContaining(["messages", "webhook_deliveries", "attempts"]),
  )
  const source = await opened(openSqliteStore({ path: file, own: false, openMoved: true, onLost: () => {} }))
  const target = await opened(openPostgresStore({ url, name: "test" }))
  const expected = await everything(source, DEFAULT_ORG)
  expect(expected.counts).toEqual({ pending: 95, failed: 5, delivered: 2523, dead: 23, calledOff: 3 })
  const moved = await everything(target, DEFAULT_ORG)
  for (const [what, rows] of Object.entries(expected))
    expect({ [what]: moved[what as keyof typeof moved] }).toEqual({ [what]: rows })
  expect(moved.endpoints).toContainEqual(
    expect.objectContaining({ uid: "many", description: "für\ufffdalle" }),
  )
  await expectPartitioned(client)
  await source.close()

  const posthorn = await openTarget(url)
  receiver.clear()
  receiver.always("/hangs", 200)
  await posthorn.endpoints.resume("acme", "paused")
  await posthorn.endpoints.resume("acme", "line")
  const [hung, paused, line] = await Promise.all([
    receiver.arrived("/hangs", 3),
    receiver.arrived("/paused", 30),
    receiver.arrived("/line", IN_LINE),
  ])
  expect(line.map(({ body }) => JSON.parse(String(body)).n)).toEqual(
    Array.from({ length: IN_LINE }, (_, n) => n),
  )
  expect(new Set(hung.map(({ id }) => id)).size).toBe(3)
  verifySignature(secret, paused[0]!.headers, paused[0]!.body)
  const { data: unknown } = await posthorn.attempts.list({ status: "unknown" })
  expect(unknown).toHaveLength(3)

  expect(await posthorn.send("acme", KEYED)).toMatchObject({ id: keyedId, duplicate: true })
  await expect(posthorn.send("acme", { ...KEYED, payload: "another" })).rejects.toMatchObject({
    code: "conflict",
  })
  expect(Buffer.from((await posthorn.messages.get("acme", "bytes")).payload!)).toEqual(Buffer.from(BINARY))
  receiver.clear()
  const sent = await posthorn.send("acme", { eventType: "all.of-them", payload: "new" })
  expect(sent).toMatchObject({ matched: 7, duplicate: false })
  expect(await receiver.arrived("/line", 1)).toMatchObject([{ id: sent.id }])
  const { rows } = await client.query(
    "SELECT max(seq) = (SELECT seq FROM messages WHERE id = $1) AS last FROM messages",
    [sent.id],
  )
  expect(rows).toEqual([{ last: true }])

  expect(await run(...args)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("was moved to this database before"),
  })
})

/** Until a statement of another connection waits for a lock. */
async function waitsForLock(url: string): Promise<void> {
  const client = await connect(url)
  const waiting =
    "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
  await expect.poll(async () => (await client.query(waiting)).rowCount, { timeout: 10_000 }).toBe(1)
}

/** Finished rows lie in the table of the day on which they may go, and their attempts with them. */
async function expectPartitioned(client: pg.Client): Promise<void> {
  const { rows } = await client.query(`
    SELECT count(*)::int AS finished,
           count(*) FILTER (WHERE d.purge_day <> ceil(d.purge_at / 86400000.0))::int AS misplaced,
           count(*) FILTER (WHERE EXISTS (SELECT FROM attempts a WHERE a.delivery_id = d.id AND a.purge_day <> d.purge_day))::int AS apart
      FROM webhook_deliveries d WHERE status IN ('delivered', 'dead')`)
  expect(rows).toEqual([{ finished: 2546, misplaced: 0, apart: 0 }])
}

/** A file of two tenants that call everything the same, with what else a server writes. */
async function tenantsStore(): Promise<string> {
  const file = join(temporaryFolder(), "posthorn.db")
  writeFileSync(`${file}.key`, `${"00".repeat(32)}\n`)
  const store = await opened(openSqliteStore({ path: file, own: true, onLost: () => {} }))
  for (const orgId of [ORG, OTHER_ORG]) {
    const application = sample.application({ orgId, uid: "acme", rateLimit: 9 })
    await store.createApplication(application)
    await store.putPolicy({ orgId, name: "mine", policy: `{"of":"${orgId}"}`, updatedAt: NOW })
    const endpoint = sample.endpoint(application.id, { orgId, uid: "one", retryName: "mine" })
    await store.createEndpoint(endpoint)
    for (const kind of ["event-type", "key", "answer"] as const) {
      const entry = sample.entry({
        orgId,
        kind,
        name: `${kind} 1`,
        owner: application.id,
        expiresAt: NOW + 5,
      })
      await store.saveEntryIfUnchanged(entry)
      await store.saveEntryIfUnchanged({ ...entry, version: 2, body: "changed" })
    }
    const send = async (more = {}) => {
      const message = sample.message("acme", { orgId, maxAttempts: 1, ...more })
      await store.acceptMany([message])
      return message
    }
    const tried = await send({ tags: ["vip"], channels: ["north"] })
    const work = await lanesOf(store).fetch(laneFetch(endpoint.id, 1), NOW)
    await lanesOf(store).settle(work.deliveries.map((one) => settlement(endpoint.id, 1, one, 500)))
    const [dead] = await store.listDeliveries({ messageId: tried.id }, newest(1))
    const { seq, status, attemptCount } = dead!
    const change = revive(dead!, NOW)
    await store.amendIfUnchanged([
      { seq, expectedStatus: status, expectedAttemptCount: attemptCount, change },
    ])
    const again = await lanesOf(store).fetch(laneFetch(endpoint.id, 1), NOW)
    await lanesOf(store).settle(again.deliveries.map((one) => settlement(endpoint.id, 1, one, 500)))
    const [attempt] = await store.listAttempts({ messageId: tried.id }, newest(1))
    await store.expungeAttempt(tried.id, attempt!.id)
    await store.expungeMessage(application.id, tried.id)
    await send({ payloadUntil: NOW + 7, to: endpoint.id })
    const filter = { appId: application.id, endpointId: endpoint.id, tag: "vip", since: NOW }
    await store.createTask(sample.task({ orgId, action: "replay", type: "replay", filter, data: '{"n":1}' }))
  }
  await store.close()
  return file
}

test("tenants, their entries, tags, expunged payloads and tasks over messages arrive", async () => {
  const file = await tenantsStore()
  const url = await freshDatabase()
  const { code, stdout } = await run("--from", `sqlite:${file}`, "--to", url)
  expect(code).toBe(0)
  expect(stdout).toMatch(/^entries +6 +6$/m)
  expect(stdout).toMatch(/^attempt_rollups +2 +2$/m)
  const source = await opened(openSqliteStore({ path: file, own: false, openMoved: true, onLost: () => {} }))
  const target = await opened(openPostgresStore({ url, name: "test" }))
  const expected = await everything(source, ORG, OTHER_ORG)
  expect(expected.attempts.map(({ manual }) => manual)).toEqual([true, false, true, false])
  expect(await everything(target, ORG, OTHER_ORG)).toEqual(expected)

  const [application] = await target.listApplications(ORG, newest(1))
  expect(await target.listMessages({ appId: application!.id, tag: "vip" }, newest(9), true)).toMatchObject([
    { expunged: true, payload: null },
  ])
  const [task] = await target.listRunningTasks(1)
  expect(await target.readTaskMessages(task!.id, 9)).toMatchObject([{ tags: ["vip"] }])
  // The payloads and the entries whose time has come, and nothing else.
  expect(await target.purge(NOW + 7, 100)).toBe(2 + 6)
})

test("a file of which a payload was removed after its move began is refused", async () => {
  const file = await tenantsStore()
  const url = await freshDatabase()
  await run("--from", `sqlite:${file}`, "--to", url)
  const client = await connect(url)
  await client.query(
    "UPDATE meta SET value = (value::jsonb || '{\"finishedAt\": null}')::text WHERE key = 'migration'",
  )
  const source = await openSqliteStore({ path: file, own: false, openMoved: true, onLost: () => {} })
  const [application] = await source.listApplications(ORG, newest(1))
  const [message] = await source.listMessages({ appId: application!.id }, newest(1), false)
  await source.expungeMessage(application!.id, message!.id)
  await source.close()
  const { code, stderr } = await run("--from", `sqlite:${file}`, "--to", url)
  expect(code).toBe(1)
  expect(stderr).toContain("was changed after its move to this target began")
})

test("a list with a NUL, which only typed SQL can have made, arrives without it", async () => {
  const file = await smallStore(0)
  const db = new DatabaseSync(file)
  db.exec(String.raw`UPDATE endpoints SET channels = '["a\u0000b", "\\u0000"]'`)
  db.close()
  const url = await freshDatabase()
  expect(await run("--from", `sqlite:${file}`, "--to", url)).toMatchObject({ code: 0 })
  const posthorn = await openTarget(url)
  expect((await posthorn.endpoints.get("acme", "one")).channels).toEqual(["a\ufffdb", "\\u0000"])
})

test("a key from the environment stays there: the target is bound to it and does not have it", async () => {
  const key = "ab".repeat(32)
  process.env.POSTHORN_ENCRYPTION_KEY = key
  onTestFinished(() => void delete process.env.POSTHORN_ENCRYPTION_KEY)
  const file = await smallStore(1)
  const url = await freshDatabase()
  const { code, stdout } = await run("--from", `sqlite:${file}`, "--to", url)
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: expect.stringContaining("the same POSTHORN_ENCRYPTION_KEY"),
  })
  const { rows } = await (await connect(url)).query("SELECT value FROM meta WHERE value LIKE '%abab%'")
  expect(rows).toEqual([])
  delete process.env.POSTHORN_ENCRYPTION_KEY
  await expect(openPosthorn({ store: url, deliver: false })).rejects.toMatchObject({
    code: "wrong_encryption_key",
  })
  const posthorn = await openPosthorn({ store: url, deliver: false, encryptionKey: key })
  onTestFinished(() => posthorn.close())
  expect(await posthorn.endpoints.secret("acme", "one")).toMatchObject({
    key: expect.stringMatching(/^whsec_/),
  })
})

test("an empty file is moved too, and the first send gets the first number", async () => {
  const file = join(temporaryFolder(), "posthorn.db")
  await (await openPosthorn({ store: `sqlite:${file}`, logger: "silent" })).close()
  const url = await freshDatabase()
  expect(await run("--from", `sqlite:${file}`, "--to", url)).toMatchObject({ code: 0 })
  const posthorn = await openTarget(url)
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  await posthorn.send("acme", { eventType: "a", payload: 1 })
  const { rows } = await (await connect(url)).query("SELECT seq::int FROM messages")
  expect(rows).toEqual([{ seq: 1 }])
})

test("--quiet says nothing of the progress", async () => {
  const file = await smallStore(1)
  const { code, stderr } = await run("--from", `sqlite:${file}`, "--to", await freshDatabase(), "--quiet")
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
})

test("a file that somebody delivers from is not moved", async () => {
  const file = await smallStore(1)
  const owner = await openPosthorn({ store: `sqlite:${file}`, logger: "silent" })
  onTestFinished(() => owner.close())
  const { code, stderr } = await run("--from", `sqlite:${file}`, "--to", await freshDatabase())
  expect(code).toBe(1)
  expect(stderr).toMatch(
    new RegExp(
      `^posthorn: ${file} is in use by another Posthorn \\(process ${process.pid} on .*\\): stop it, .*\n$`,
    ),
  )
})

test("a target with other data is refused, and keeps what it has", async () => {
  const file = await smallStore(1)
  const url = await freshDatabase()
  const other = await openPosthorn({ store: url, logger: "silent", deliver: false })
  await other.applications.create({ uid: "mine", name: "Mine" })
  await other.close()
  const refused = await run("--from", `sqlite:${file}`, "--to", url)
  expect(refused).toMatchObject({
    code: 1,
    stderr: "posthorn: the target has data already: give an empty database\n",
  })
  const again = await openPosthorn({ store: url, logger: "silent", deliver: false })
  onTestFinished(() => again.close())
  expect((await again.applications.list()).data).toMatchObject([{ uid: "mine" }])
})

test("a target on which somebody delivers is refused", async () => {
  const url = await freshDatabase()
  await openTarget(url)
  const { code, stderr } = await run("--from", `sqlite:${await smallStore(1)}`, "--to", url)
  expect(code).toBe(1)
  expect(stderr).toMatch(
    /^posthorn: the target is in use \(posthorn \d+\): stop every Posthorn on it until the move is finished\n$/,
  )
})

test("a file that was used again after its move began is refused, and so is another file", async () => {
  const file = await smallStore(1)
  const url = await freshDatabase()
  await run("--from", `sqlite:${file}`, "--to", url)
  const client = await connect(url)
  await client.query(
    "UPDATE meta SET value = (value::jsonb || '{\"finishedAt\": null}')::text WHERE key = 'migration'",
  )
  const posthorn = await openPosthorn({
    store: `sqlite:${file}`,
    logger: "silent",
    deliver: false,
    openMoved: true,
  })
  await posthorn.endpoints.update("acme", "one", { description: "another" })
  await posthorn.close()
  expect(await run("--from", `sqlite:${file}`, "--to", url)).toMatchObject({
    code: 1,
    stderr: `posthorn: ${file} was changed after its move to this target began: leave it alone meanwhile, and begin again with an empty database\n`,
  })
  expect(await run("--from", `sqlite:${await smallStore(1)}`, "--to", url)).toMatchObject({
    code: 1,
    stderr: `posthorn: the target has data already, moved there from ${file}: give an empty database\n`,
  })
})

test("migrate moves into the schema that it is given", async () => {
  const file = await smallStore(3)
  const url = await freshDatabase()
  const to = `${url}?schema=red`
  expect(await run("--from", `sqlite:${file}`, "--to", url, "--schema", "red")).toMatchObject({ code: 0 })
  const { rows } = await (await connect(url)).query("SELECT count(*)::int AS n FROM red.messages")
  expect(rows).toEqual([{ n: 3 }])
  expect(await (await openTarget(to)).stats()).toMatchObject({ pending: 3 })
  // The sequences of that schema, too, stand behind the rows that were moved.
  await (await openTarget(to)).send("acme", { eventType: "a", payload: {} })
  expect(await run("--from", `sqlite:${file}`, "--to", to, "--schema", "blue")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--schema is "blue", and the URL of the store says "red"'),
  })
})

test("a row that something else wrote meanwhile shows, and the target stays closed", async () => {
  const file = await smallStore(3)
  const url = await freshDatabase()
  const client = await connect(url)
  await (await openPostgresStore({ url, name: "test" })).close()
  await client.query("BEGIN; LOCK TABLE lanes IN EXCLUSIVE MODE")
  const program = start("--from", `sqlite:${file}`, "--to", url)
  await waitsForLock(url)
  await client.query("INSERT INTO policies VALUES ('org_stray', 'stray', '{}', 0)")
  await client.query("COMMIT")
  expect(await program.ended).toMatchObject({ code: 1 })
  expect(program.lines.join("\n")).toMatch(/^policies +0 +1 +differs$/m)
  expect(program.stderr).toContain(
    "posthorn: the contents of policies differ: something else writes to the database",
  )
  await expect(openPosthorn({ store: url })).rejects.toThrow(PosthornError)
})

test.each([
  [[], "--from is missing: give it the file, as sqlite:FILE"],
  [["--from", "posthorn.db"], "--from must be sqlite: and the path of a file, such as sqlite:posthorn.db"],
  [
    ["--from", "sqlite::memory:"],
    "--from must be sqlite: and the path of a file, such as sqlite:posthorn.db",
  ],
  [["--from", "sqlite:a.db"], "--to is missing: give it the database, as postgres://…"],
  [
    ["--from", "sqlite:a.db", "--to", "mysql://x"],
    "--to must be a URL like postgres://user:password@host:5432/database",
  ],
  [["--form", "sqlite:a.db"], "unknown flag --form; did you mean --from?"],
])("%j is refused with one sentence", async (args, sentence) => {
  expect(await run(...args)).toMatchObject({ code: 2, stdout: "", stderr: `posthorn: ${sentence}\n` })
})

test.each([
  [
    "postgres://posthorn:secret@127.0.0.1:1/none",
    /^posthorn: cannot open postgres:\/\/posthorn@127\.0\.0\.1:1\/none: .*ECONNREFUSED.*\n$/,
  ],
  ["missing", /^posthorn: cannot open .*: there is no such database; create it first\n$/],
])("a target %s ends it with one sentence and no password", async (where, sentence) => {
  const url = where === "missing" ? new URL("/missing", process.env.POSTHORN_TEST_POSTGRES_URL).href : where
  const { code, stderr } = await run("--from", `sqlite:${await smallStore(0)}`, "--to", url)
  expect(code).toBe(1)
  expect(stderr).toMatch(sentence)
  expect(stderr).not.toContain("secret")
})

test("a file that is not there, not a database, not ours, too new, or without its key is refused", async () => {
  const url = await freshDatabase()
  const folder = temporaryFolder()
  const told = async (file: string) => {
    const { code, stderr } = await run("--from", `sqlite:${file}`, "--to", url)
    expect(code).toBe(1)
    return stderr.trimEnd()
  }
  const none = join(folder, "none.db")
  expect(await told(none)).toBe(`posthorn: there is no file ${none}`)

  const text = join(folder, "text.db")
  writeFileSync(text, "This is not a database, whatever its name says.".repeat(100))
  expect(await told(text)).toBe(
    `posthorn: ${text} cannot be opened as a Posthorn database: file is not a database`,
  )

  const foreign = join(folder, "foreign.db")
  const db = new DatabaseSync(foreign)
  db.exec("CREATE TABLE mine (id INTEGER)")
  expect(await told(foreign)).toBe(`posthorn: ${foreign} is not a Posthorn database`)
  db.exec("PRAGMA user_version = 99")
  db.close()
  expect(await told(foreign)).toBe(
    `posthorn: ${foreign} has schema 99, this program knows ${MIGRATIONS.length}: it was written by a newer Posthorn; update this one`,
  )

  const file = await smallStore(0)
  writeFileSync(`${file}.key`, `${"00".repeat(32)}\n`)
  expect(await told(file)).toMatch(
    /^posthorn: the secrets in .* were encrypted with key \w+, not with .*\.key \(\w+\): give the key it was created with$/,
  )
  rmSync(`${file}.key`)
  expect(await told(file)).toBe(
    `posthorn: the encryption key ${file}.key is not there: put it back, or set POSTHORN_ENCRYPTION_KEY`,
  )
})

test("--help says what it does, with an example", async () => {
  const { code, stdout } = await run("--help")
  expect(code).toBe(0)
  expect(stdout).toContain("posthorn migrate --from sqlite:posthorn.db --to postgres://")
})

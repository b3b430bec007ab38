/** After `posthorn migrate`: the keys still do what they did, a lost column is noticed, and the old file refuses to deliver. */
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import pg from "pg"
import { expect, onTestFinished, test, vi } from "vitest"
import { callerFromClaims } from "../../src/api/caller.ts"
import { createServer } from "../../src/api/server.ts"
import { makeFirstKey } from "../../src/cli/first-key.ts"
import { DEFAULT_ORG } from "../../src/core/org.ts"
import { openPosthorn, type Posthorn, type PosthornOptions } from "../../src/index.ts"
import { Comparison } from "../../src/migrate/compare.ts"
import { migrate as move } from "../../src/migrate/migrate.ts"
import { openPostgresStore } from "../../src/store/postgres/store.ts"
import { addressOf, serve, start } from "../api/support/serving.ts"
import { SEARCH_PATH } from "../support/ground.ts"
import { LOOPBACK, temporaryFolder } from "../support/harness.ts"
import { LogLines } from "../support/log-lines.ts"
import { freshDatabase } from "../support/servers/postgres.ts"

const migrate = (file: string, url: string) => move(file, { url, schema: null }, {})
/** For tests that start several processes one after the other. */
const PATIENT = { timeout: 120_000 }
const WHEN = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/

async function open(options: PosthornOptions) {
  const posthorn = await openPosthorn({ logger: "silent", egress: LOOPBACK, closeTimeoutMs: 0, ...options })
  onTestFinished(() => posthorn.close())
  return posthorn
}

/** A file with an admin key, a key of an application, and a message that waits. */
async function servedFile() {
  const file = join(temporaryFolder(), "posthorn.db")
  const posthorn = await open({ store: `sqlite:${file}` })
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  await posthorn.endpoints.create("acme", { uid: "one", url: "http://127.0.0.1:9/" })
  await posthorn.endpoints.pause("acme", "one")
  await posthorn.send("acme", { eventType: "a", payload: { n: 1 }, idempotencyKey: "k" })
  const admin = (await makeFirstKey(posthorn.keys))!
  const { token } = await posthorn.keys.create({ name: "portal", scope: "application", appId: "acme" })
  await posthorn.close()
  return { file, admin, token }
}

test(
  "keys of an application can be expired, and the first start makes no second admin key",
  PATIENT,
  async () => {
    const { file, admin, token } = await servedFile()
    const url = await freshDatabase()
    await migrate(file, url)
    const server = serve(["--store", url])
    const address = await addressOf(server)
    expect(server.lines).toEqual([])
    const ask = async (key: string, method: string, path: string, body?: string) => {
      const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
      return (await fetch(`${address}/api/v1${path}`, { method, headers, body: body ?? null })).status
    }
    expect(await ask(token, "GET", "/app/acme")).toBe(200)
    expect(await ask(admin, "POST", "/auth/app/acme/expire-all", "{}")).toBe(204)
    expect(await ask(token, "GET", "/app/acme")).toBe(401)
  },
)

test("every table of a file is moved, or known to stay", async () => {
  const { file } = await servedFile()
  const { tables: moved } = await migrate(file, await freshDatabase())
  const db = new DatabaseSync(file, { readOnly: true })
  onTestFinished(() => db.close())
  const tables = db
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
    .all()
    .map(({ name }) => (name as string).replace(/^idempotency_\d+$/, "idempotency"))
  expect([...new Set(tables)].sort()).toEqual([...moved.map(({ table }) => table), "meta"].sort())
})

test.each([
  ["the file", "ALTER TABLE entries ADD COLUMN novel TEXT", null, "entries.novel is in the file"],
  ["the database", null, "ALTER TABLE entries ADD COLUMN novel text", "entries.novel is in the database"],
])("a column that only %s has stops the move", async (_where, inFile, inDatabase, told) => {
  const { file } = await servedFile()
  const url = await freshDatabase()
  const store = await openPostgresStore({ url, name: "test" })
  onTestFinished(() => store.close())
  if (inDatabase !== null) await store.database.run({ name: "", text: inDatabase }, [])
  if (inFile !== null) {
    const db = new DatabaseSync(file)
    db.exec(inFile)
    db.close()
  }
  await expect(migrate(file, url)).rejects.toMatchObject({
    code: "store_incompatible",
    message: expect.stringContaining(told),
  })
})

test("a column that both have is moved, whoever added it", async () => {
  const { file } = await servedFile()
  const url = await freshDatabase()
  await (await openPostgresStore({ url, name: "test" })).close()
  const client = new pg.Client({ connectionString: url, options: SEARCH_PATH })
  await client.connect()
  onTestFinished(() => client.end())
  await client.query("ALTER TABLE applications ADD COLUMN novel bytea, ADD COLUMN sure boolean")
  const db = new DatabaseSync(file)
  db.exec("ALTER TABLE applications ADD COLUMN novel BLOB; ALTER TABLE applications ADD COLUMN sure INTEGER")
  db.exec("UPDATE applications SET novel = x'00ff', sure = 1")
  db.close()
  await migrate(file, url)
  const { rows } = await client.query("SELECT novel, sure FROM applications")
  expect(rows).toEqual([{ novel: Buffer.from([0, 255]), sure: true }])
})

/** As if the copy had forgotten it: what arrives is altered on the way in. */
test.each([
  ["entries", "owner", "NEW.owner := NULL"],
  ["messages", "payload", "NEW.payload := NEW.payload || '!'::bytea"],
  ["webhook_deliveries", "purge_day", "NEW.purge_day := NEW.purge_day + 1"],
  ["endpoints", "event_types", "NEW.event_types := ARRAY['b']"],
  ["endpoints", "paused", "NEW.paused := false"],
])("a loss in %s.%s stops the move, and the database stays closed", async (table, column, change) => {
  const { file } = await servedFile()
  const url = await freshDatabase()
  const store = await openPostgresStore({ url, name: "test" })
  onTestFinished(() => store.close())
  const run = (text: string) => store.database.run({ name: "", text }, [])
  await run(
    `CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${change}; RETURN NEW; END $$`,
  )
  const live = table === "webhook_deliveries" ? `${table}_live` : table
  await run(`CREATE TRIGGER lose BEFORE INSERT ON ${live} FOR EACH ROW EXECUTE FUNCTION lose()`)
  const program = start(["migrate", "--from", `sqlite:${file}`, "--to", url, "--quiet"])
  expect(await program.ended).toMatchObject({ code: 1 })
  expect(program.lines.join("\n")).toMatch(new RegExp(`^${table} .*differs in ${column}$`, "m"))
  expect(program.stderr).toMatch(new RegExp(`^posthorn: .*${table}.* differ`))
  await expect(open({ store: url })).rejects.toMatchObject({ code: "store_incompatible" })
  // The file was not moved: it can still be used.
  await open({ store: `sqlite:${file}` })
})

test("the moved file says where it went and when, and opens by force alone", PATIENT, async () => {
  const { file } = await servedFile()
  const url = new URL(await freshDatabase())
  url.password = "hush"
  await migrate(file, url.href)
  const { host, pathname, username } = url
  const where = `postgres://${username === "" ? "" : `${username}@`}${host}${pathname}?schema=posthorn`
  for (const deliver of [true, false]) {
    const refused = await open({ store: `sqlite:${file}`, deliver }).catch((error) => error)
    expect(refused).toMatchObject({ code: "store_moved" })
    expect(refused.message).toContain(`${file} was moved to ${where} on `)
    expect(refused.message).toMatch(WHEN)
    expect(refused.message).not.toContain("hush")
  }
  for (const command of ["serve", "worker"]) {
    const program = start([command, "--store", `sqlite:${file}`])
    expect(await program.ended).toMatchObject({ code: 1 })
    expect(program.stderr).toMatch(/^posthorn: .* was moved to .*--force.*\n$/)
  }
  await addressOf(serve(["--store", `sqlite:${file}`, "--force"]))
})

test("the option openMoved opens it and delivers", async () => {
  const { file } = await servedFile()
  await migrate(file, await freshDatabase())
  const posthorn = await open({ store: `sqlite:${file}`, openMoved: true })
  expect(await posthorn.send("acme", { eventType: "a", payload: 1 })).toMatchObject({ matched: 1 })
})

test("a file that was moved is not moved to another database, unless forced", async () => {
  const { file } = await servedFile()
  await migrate(file, await freshDatabase())
  const other = await freshDatabase()
  await expect(migrate(file, other)).rejects.toMatchObject({ code: "store_moved" })
  const program = start(["migrate", "--from", `sqlite:${file}`, "--to", other, "--quiet", "--force"])
  expect(await program.ended).toMatchObject({ code: 0 })
  const refused = await open({ store: `sqlite:${file}` }).catch((error) => error)
  expect(refused.message).toContain(`was moved to ${other}?schema=`)
})

test("a process that was open beside the move sends no more into the file", async () => {
  const { file } = await servedFile()
  const guest = await open({ store: `sqlite:${file}`, deliver: false })
  const forced = await open({ store: `sqlite:${file}`, deliver: false, openMoved: true })
  const send = (posthorn: Posthorn) => posthorn.send("acme", { eventType: "a", payload: 1 })
  await migrate(file, await freshDatabase())
  for (let n = 0; n < 2; n++) await expect(send(guest)).rejects.toMatchObject({ code: "store_moved" })
  const log = new LogLines()
  const api = createServer(guest, {
    logger: log.logger,
    maxPayloadBytes: 1000,
    maxRequests: 10,
    closeTimeoutMs: 0,
    readToken: async () => callerFromClaims({ sub: DEFAULT_ORG }),
  })
  onTestFinished(() => api.close())
  const answer = await api.inject({
    method: "POST",
    url: "/api/v1/app/acme/msg",
    headers: { authorization: "Bearer a.b.c" },
    payload: { eventType: "a", payload: 1 },
  })
  expect(answer.statusCode).toBe(503)
  expect(answer.json()).toMatchObject({ code: "store_moved", detail: expect.stringContaining("was moved") })
  expect(answer.headers["retry-after"]).toBe("30")
  expect(answer.body).not.toContain("postgres://")
  expect(JSON.stringify(log.all)).toContain("was moved to postgres://")
  await send(forced)
})

test("a send into the file while the contents are compared stops the move, and the file stays in use", async () => {
  const { file } = await servedFile()
  const url = await freshDatabase()
  const guest = await open({ store: `sqlite:${file}`, deliver: false })
  const send = () => guest.send("acme", { eventType: "a", payload: 1 })
  const isSame = Comparison.prototype.isSame
  const comparing = vi.spyOn(Comparison.prototype, "isSame").mockImplementation(async function (
    this: Comparison,
    runner,
  ) {
    await send()
    return isSame.call(this, runner)
  })
  onTestFinished(() => comparing.mockRestore())
  await expect(migrate(file, url)).rejects.toMatchObject({
    code: "conflict",
    message: expect.stringContaining("was changed while it was moved"),
  })
  await send()
  await expect(open({ store: url })).rejects.toMatchObject({ code: "store_incompatible" })
})

test("a move that ends between the file's mark and the database's is finished by the next run", async () => {
  const { file } = await servedFile()
  const url = await freshDatabase()
  const store = await openPostgresStore({ url, name: "test" })
  onTestFinished(() => store.close())
  const run = (text: string) => store.database.run({ name: "", text }, [])
  // The finish writes the fingerprint last but one; a database that refuses it is one that went away.
  await run(`CREATE FUNCTION break() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.key = 'encryption_key' AND NEW.value NOT LIKE '(%' THEN RAISE 'gone'; END IF; RETURN NEW; END $$`)
  await run(`CREATE CONSTRAINT TRIGGER break AFTER INSERT OR UPDATE ON meta DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION break()`)
  await expect(migrate(file, url)).rejects.toThrow("gone")
  // At no moment can both deliver.
  await expect(open({ store: `sqlite:${file}` })).rejects.toMatchObject({ code: "store_moved" })
  await expect(open({ store: url })).rejects.toMatchObject({ code: "store_incompatible" })
  await run("DROP TRIGGER break ON meta")
  await migrate(file, url)
  await open({ store: url })
})

import { once } from "node:events"
import { createServer as createHttpServer } from "node:http"
import { type AddressInfo, createServer, type Server } from "node:net"
import { expect, onTestFinished, test } from "vitest"
import { migratedDatabase } from "../../../test/support/migrated-database.ts"
import { connect, openStore, stage } from "../../../test/support/postgres-store.ts"
import { freshDatabase } from "../../../test/support/servers/postgres.ts"
import { storeConformance } from "../conformance.ts"
import { refuseOldServer } from "./migrate.ts"
import { DAY_MS } from "./partitions.ts"
import { MIGRATIONS } from "./schema.ts"
import { openPostgresStore } from "./store.ts"

storeConformance("postgres", async () => {
  const url = await migratedDatabase()
  const store = await openStore(url)
  return {
    store,
    async reopen() {
      await store.kill()
      return openStore(url)
    },
    beside: () => openStore(url),
    retentionGrainMs: DAY_MS,
  }
})

test("many processes that start on an empty database run every migration once", async () => {
  const url = await freshDatabase()
  await Promise.all(Array.from({ length: 6 }, () => openStore(url)))
  const { rows } = await (await connect(url)).query(
    "SELECT number, additive FROM posthorn_migrations ORDER BY 1",
  )
  expect(rows).toEqual(MIGRATIONS.map(({ additive }, i) => ({ number: i + 1, additive })))
})

test("opening a database that is up to date costs one statement", async () => {
  const { url } = await stage()
  expect((await openStore(url)).database.statements).toBe(1)
})

test("a database that a newer program changed is refused and left as it is; one that it only added to is not", async () => {
  const { url, query } = await stage()
  await query("INSERT INTO posthorn_migrations (number, additive) VALUES (998, true)")
  await (await openStore(url)).check()
  await query("INSERT INTO posthorn_migrations (number, additive) VALUES (999, false)")
  await expect(openStore(url)).rejects.toMatchObject({
    code: "store_incompatible",
    message: `the database has schema 999, this program knows ${MIGRATIONS.length}: it was written by a newer Posthorn; update this one`,
  })
})

test("a migration that fails leaves nothing behind, and the next start runs it", async () => {
  const url = await freshDatabase()
  const client = await connect(url)
  await client.query("CREATE SCHEMA posthorn; CREATE VIEW jobs AS SELECT 1")
  await expect(openStore(url)).rejects.toMatchObject({ message: expect.stringContaining('"jobs"') })
  await client.query("DROP VIEW jobs")
  await (await openStore(url)).check()
})

test.each(["9.6.24", "13.16 (Debian 13.16-1)"])("PostgreSQL %s is too old", (version) => {
  expect(() => refuseOldServer(version)).toThrow(expect.objectContaining({ code: "store_incompatible" }))
})
test.each(["14.0", "15.18 (Debian 15.18-0+deb12u1)", "18beta1"])("PostgreSQL %s will do", (version) => {
  expect(() => refuseOldServer(version)).not.toThrow()
})

async function listen(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  onTestFinished(() => {
    server.close()
  })
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Answers every startup message with an error, as PostgreSQL does before authentication. */
function refusingServer(code: string): Promise<string> {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0Mno\0\0`)
  const head = Buffer.alloc(5)
  head.write("E")
  head.writeInt32BE(fields.length + 4, 1)
  return listen(
    createServer((socket) =>
      socket.on("error", () => {}).once("data", () => socket.end(Buffer.concat([head, fields]))),
    ),
  )
}

test.each([
  ["28P01", "the password is wrong"],
  ["28000", "the server does not let this user in (no): see to the user and to pg_hba.conf"],
  ["3D000", "there is no such database; create it first"],
  ["53300", "the server has no connection left; raise max_connections or put PgBouncer before it"],
])("a server that refuses with %s is reported in one sentence, without the password", async (code, problem) => {
  const address = await refusingServer(code)
  await expect(
    openPostgresStore({ url: `postgres://ann:s3cret@${address}/shop?password=s3cret`, name: "" }),
  ).rejects.toMatchObject({
    code: "store_unavailable",
    field: "store",
    message: `cannot open postgres://ann@${address}/shop: ${problem}`,
  })
})

test("a server that is not running, and one that is not PostgreSQL, are reported", async () => {
  const server = createServer()
  const gone = await listen(server)
  server.close()
  const web = await listen(createHttpServer())
  for (const [address, problem] of [
    [gone, `connect ECONNREFUSED ${gone}`],
    [web, "Connection terminated unexpectedly"],
  ])
    await expect(openStore(`postgres://ann@${address}/shop`)).rejects.toMatchObject({
      code: "store_unavailable",
      message: `cannot open postgres://ann@${address}/shop: ${problem}; is PostgreSQL running there, and are host and port right?`,
    })
})

test("an unknown user and a missing certificate are reported by name", async () => {
  const url = new URL(await freshDatabase())
  url.username = "nobody_at_all"
  await expect(openStore(url.href)).rejects.toMatchObject({
    code: "store_unavailable",
    message: expect.stringContaining('role "nobody_at_all" does not exist'),
  })
  const missing = `${await freshDatabase()}?sslmode=verify-full&sslrootcert=/missing/ca.pem`
  await expect(openStore(missing)).rejects.toMatchObject({
    code: "store_unavailable",
    message: expect.stringMatching(
      /(?!.*is PostgreSQL running)sslrootcert.* cannot be read: .*\/missing\/ca\.pem/,
    ),
  })
})

test("a user who may not create the schema is refused, and may use an existing one", async () => {
  const url = new URL(await freshDatabase())
  const client = await connect(url.href)
  const role = `posthorn_guest_${process.pid}`
  await client.query(`CREATE ROLE ${role} LOGIN`)
  onTestFinished(async () => void (await client.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`)))
  url.username = role
  await expect(openStore(url.href)).rejects.toMatchObject({
    code: "store_unavailable",
    message: expect.stringContaining("grant it CREATE on the database, or make it the owner of the schema"),
  })
  await client.query(`CREATE SCHEMA posthorn AUTHORIZATION ${role}`)
  await (await openStore(url.href)).check()
})

test.each([
  "postgres:",
  "mysql://host/db",
  "postgres://ann:p#ss@host/db",
  "postgres://host:port/db",
])("the URL %s is refused with an example", async (url) => {
  await expect(openPostgresStore({ url, name: "" })).rejects.toMatchObject({
    code: "invalid_input",
    field: "store",
    message: expect.stringContaining("postgres://user:password@host:5432/database"),
  })
})

test("processes without an encryption key share the one that the first of them created", async () => {
  const { url, store } = await stage()
  const other = await openStore(url)
  const keys = await Promise.all([store.encryptionKey(), other.encryptionKey(), store.encryptionKey()])
  expect(new Set(keys).size).toBe(1)
  expect(keys[0]).toMatch(/^[0-9a-f]{64}$/)
})

test("the check names the server", async () => {
  const { store } = await stage()
  await store.check()
  expect(await store.check()).toEqual({ kind: "postgres", version: expect.stringMatching(/^\d+\./) })
})

import { readdirSync, statfsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Client } from "pg"
import { expect, onTestFinished, test } from "vitest"
import { FaultProxy } from "../fault-proxy.ts"
import { freshDatabase, ownPostgres, templateDatabase } from "./postgres.ts"

async function dial(url: string): Promise<Client> {
  const client = new Client(url)
  client.on("error", () => {})
  await client.connect()
  onTestFinished(() => client.end())
  return client
}

/** The first column of the first row. */
async function ask(client: Client, sql: string): Promise<unknown> {
  return Object.values((await client.query(sql)).rows[0])[0]
}

const gone: string[] = []

test("a fresh database is empty, and nobody else's", async () => {
  const [one, other] = [await dial(await freshDatabase()), await dial(await freshDatabase())]
  await one.query("CREATE TABLE things AS SELECT 1 AS n")
  expect(await ask(one, "SELECT n FROM things")).toBe(1)
  expect(await ask(other, "SELECT to_regclass('things')")).toBe(null)
  gone.push(one.database!, other.database!)
})

test("after its test it is gone, whoever was still connected", async () => {
  const client = await dial(await freshDatabase())
  const { rows } = await client.query("SELECT FROM pg_database WHERE datname = ANY ($1)", [gone])
  expect(gone).toHaveLength(2)
  expect(rows).toHaveLength(0)
})

test("a fresh database can be a copy of another one, which is filled once for all that ask for it", async () => {
  let builds = 0
  const build = async (url: string) => {
    builds++
    const client = new Client(url)
    await client.connect()
    await client.query("CREATE TABLE things AS SELECT 42 AS n")
    await client.end()
  }
  const name = `posthorn_test_template_${process.pid}`
  await Promise.all([1, 2, 3].map(() => templateDatabase(name, build)))
  const copies = await Promise.all([freshDatabase(name), freshDatabase(name)])
  const clients = await Promise.all(copies.map(dial))
  expect(await Promise.all(clients.map((client) => ask(client, "SELECT n FROM things")))).toEqual([42, 42])
  expect(builds).toBe(1)
  await clients[0]!.query(`DROP DATABASE ${name}`)
})

test("a template whose filling failed is filled anew", async () => {
  const name = `posthorn_test_template_failed_${process.pid}`
  const failing = templateDatabase(name, async (url) => {
    const client = new Client(url)
    await client.connect()
    await client.query("CREATE TABLE half_done ()")
    await client.end()
    throw new Error("no further")
  })
  await expect(failing).rejects.toThrow("no further")
  const client = await dial(await freshDatabase(await templateDatabase(name, async () => {})))
  expect(await ask(client, "SELECT to_regclass('half_done')")).toBe(null)
  await client.query(`DROP DATABASE ${name}`)
})

test("words are ordered as people order them, as on most servers", async () => {
  const client = await dial(await freshDatabase())
  expect(await ask(client, "SELECT 'a' < 'B'")).toBe(true)
})

test.each([
  "fast",
  "immediate",
  "kill",
] as const)("a test's own server comes back at the same address with its data after a stop: %s", async (mode) => {
  const server = await ownPostgres()
  const before = await dial(server.url)
  await before.query("CREATE TABLE things AS SELECT generate_series(1, 1000) AS n")
  const cut = new Promise((resolve) => before.once("end", resolve))
  await server.stop(mode)
  await cut
  await expect(dial(server.url)).rejects.toThrow("ECONNREFUSED")
  await server.start()
  expect(await ask(await dial(server.url), "SELECT count(*)::int FROM things")).toBe(1000)
  await server.restart(mode)
  expect(await ask(await dial(server.url), "SELECT count(*)::int FROM things")).toBe(1000)
})

test("a server killed in the middle of a query comes back when the last of its processes has ended", async () => {
  const server = await ownPostgres()
  const [busy, observer] = [await dial(server.url), await dial(server.url)]
  // Nothing in it waits, so its process does not notice that the server is gone, and even answers.
  const query = busy.query("SELECT count(*) FROM generate_series(1, 5000000)")
  const running =
    "SELECT count(*)::int FROM pg_stat_activity WHERE query LIKE '%5000000%' AND state = 'active'"
  await expect.poll(() => ask(observer, `${running} AND pid <> pg_backend_pid()`)).toBe(1)
  await server.restart("kill")
  await query
  expect(await ask(await dial(server.url), "SELECT 1")).toBe(1)
})

test("a test's own server has the settings that it asks for", async () => {
  const server = await ownPostgres({ settings: { statement_timeout: 1234, max_connections: 7 } })
  const client = await dial(server.url)
  expect(await ask(client, "SHOW statement_timeout")).toBe("1234ms")
  expect(await ask(client, "SHOW max_connections")).toBe("7")
})

test("a server that cannot start says why", async () => {
  await expect(ownPostgres({ settings: { nonsense: 1 } })).rejects.toThrow('parameter "nonsense"')
})

test("a test's own server can have a small disk, which fills up and has room again", async () => {
  const server = await ownPostgres({ diskBytes: 100 * 1024 * 1024 })
  expect(readdirSync(server.dataDirectory)).toContain("PG_VERSION")
  const client = await dial(server.url)
  await client.query("CREATE TABLE things (bytes text)")
  await client.query("ALTER TABLE things ALTER bytes SET STORAGE EXTERNAL")
  const { bavail, bsize } = statfsSync(server.dataDirectory)
  expect(bavail * bsize).toBeLessThan(100 * 1024 * 1024)
  const filler = join(server.dataDirectory, "filler")
  writeFileSync(filler, Buffer.alloc(bavail * bsize))
  const insert = "INSERT INTO things SELECT repeat('x', 100000) FROM generate_series(1, 10)"
  await expect(client.query(insert)).rejects.toMatchObject({ code: "53100" })
  writeFileSync(filler, "")
  await client.query(insert)
  expect(await ask(client, "SELECT count(*)::int FROM things")).toBe(10)
})

test("through the fault proxy, the reply to a COMMIT is lost and what it committed is not", async () => {
  const url = await freshDatabase()
  const { hostname: host, port } = new URL(url)
  const proxy = await FaultProxy.start({ host, port: Number(port) })
  onTestFinished(() => proxy.close())
  const observer = await dial(url)
  await observer.query("CREATE TABLE things (n int)")
  const client = new Client(proxy.through(url))
  client.on("error", () => {})
  await client.connect()
  await client.query("BEGIN")
  await client.query("INSERT INTO things VALUES (1)")
  const lost = proxy.dropRepliesAfter((bytes) => bytes.includes("COMMIT"))
  await expect(client.query("COMMIT")).rejects.toThrow(/ECONNRESET|terminated/)
  await lost
  expect(await ask(observer, "SELECT count(*)::int FROM things")).toBe(1)
})

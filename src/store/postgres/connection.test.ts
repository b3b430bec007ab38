/** Connections to a server that is slow, gone, frozen or read-only. */
import { once } from "node:events"
import { expect, onTestFinished, test } from "vitest"
import { FaultProxy } from "../../../test/support/fault-proxy.ts"
import { connect, NOW, openStore, stage } from "../../../test/support/postgres-store.ts"
import { freshDatabase } from "../../../test/support/servers/postgres.ts"
import { sample } from "../conformance.ts"
import { generationAt } from "../idempotency.ts"
import { disconnect } from "./client.ts"
import { Database, HOT_CONNECTIONS } from "./connection.ts"
import type { Statement } from "./statement.ts"

const AT_ONCE_MS = 1000
const HALF_DAY_MS = 12 * 3600 * 1000
const LOCK = "pg_advisory_xact_lock(hashtext('posthorn partitions in posthorn'))"
const sql = (text: string): Statement => ({ name: "", text })
const ONE = sql("SELECT 1 AS one")

function openDatabase(url: string): Database {
  const database = new Database(url, "posthorn test")
  onTestFinished(() => database.close())
  return database
}

async function proxied(url: string): Promise<{ proxy: FaultProxy; url: string }> {
  const { hostname, port } = new URL(url)
  const proxy = await FaultProxy.start({ host: hostname, port: Number(port) })
  onTestFinished(() => proxy.close())
  return { proxy, url: proxy.through(url) }
}

/** The sockets of this process, to servers. */
const openSockets = () => process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap").length

test("slow lists wait for each other and delay nothing else", async () => {
  const database = openDatabase(await freshDatabase())
  // Longer than the timeout of hot statements.
  const lists = Array.from({ length: 5 }, () => database.runCalmly(sql("SELECT pg_sleep(5)"), []))
  const first = await Promise.race(lists)
  expect(first).toHaveLength(1)
  expect(await database.run(ONE, [])).toEqual([{ one: 1 }])
  expect(await Promise.all(lists)).toHaveLength(5)
})

test("a call that finds every connection busy is refused, and the server does not count as gone", async () => {
  const database = openDatabase(await freshDatabase())
  const release: (() => void)[] = []
  const holds = Array.from({ length: HOT_CONNECTIONS }, () =>
    database.transaction(() => new Promise<void>((resolve) => release.push(resolve))),
  )
  const oneMore = database.run(ONE, [])
  await expect(oneMore).rejects.toMatchObject({
    code: "store_unavailable",
    message: "all of this process's connections to PostgreSQL are busy: try again",
  })
  for (const go of release) go()
  expect(await database.run(ONE, [])).toEqual([{ one: 1 }])
  await Promise.all(holds)
})

test("a statement that an operator cancels affects no other", async () => {
  const url = await freshDatabase()
  const database = openDatabase(url)
  const client = await connect(url)
  const slow = database.run(sql("SELECT pg_sleep(4)"), []).catch((error) => error)
  const cancel = `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(4)'`
  await expect.poll(async () => (await client.query(cancel)).rowCount).toBeGreaterThan(0)
  expect((await slow).message).toBe("PostgreSQL refused: canceling statement due to user request")
  expect(await database.run(ONE, [])).toEqual([{ one: 1 }])
})

test("in a black hole it closes at once, and leaves no socket that keeps the process alive", async () => {
  const { proxy, url } = await proxied(await freshDatabase())
  const database = new Database(url, "posthorn test")
  const before = openSockets()
  await Promise.all([database.run(ONE, []), database.runCalmly(ONE, [])])
  const client = await database.connect(() => {})
  await client.query("LISTEN something")
  proxy.blackHole()
  const closingAt = performance.now()
  const ended = once(client, "end")
  await Promise.all([disconnect(client), database.close()])
  await ended
  expect(performance.now() - closingAt).toBeLessThan(2 * AT_ONCE_MS)
  // The proxy keeps its own sockets: one to the client and one to the server for each.
  await expect.poll(openSockets, { timeout: 2 * AT_ONCE_MS }).toBeLessThanOrEqual(before + 6)
})

test("in an unnoticed black hole, close waits for statements in flight until they time out", async () => {
  const { proxy, url } = await proxied(await freshDatabase())
  const database = new Database(url, "posthorn test")
  await database.runCalmly(ONE, [])
  proxy.blackHole()
  const reading = database.runCalmly(ONE, []).catch((error) => error)
  const closingAt = performance.now()
  await database.close()
  expect(performance.now() - closingAt).toBeLessThan(6 * AT_ONCE_MS)
  expect(await reading).toMatchObject({ code: "store_unavailable" })
})

test("close serves or refuses calls that wait for a connection", async () => {
  const database = new Database(await freshDatabase(), "posthorn test")
  const served = Array.from({ length: 20 }, () => database.run(ONE, []))
  const tooSlow = Array.from({ length: 5 }, () => database.runCalmly(sql("SELECT pg_sleep(20)"), []))
  const refused = Promise.allSettled(tooSlow)
  await database.close()
  expect(await Promise.all(served)).toHaveLength(20)
  for (const outcome of await refused) expect(outcome.status).toBe("rejected")
  await expect(database.run(ONE, [])).rejects.toMatchObject({ code: "closed" })
})

test("a process that freezes in a transaction loses its locks after ten seconds", async () => {
  const url = await freshDatabase()
  const database = openDatabase(url)
  const client = await connect(url)
  const [held, thawed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const work = database.transaction(async (runner) => {
    await runner.run(sql(`SELECT ${LOCK}`), [])
    held.resolve()
    await thawed.promise
  })
  await held.promise
  const askedAt = performance.now()
  await client.query(`SELECT ${LOCK}`)
  expect(performance.now() - askedAt).toBeLessThan(12_000)
  thawed.resolve()
  await expect(work).rejects.toMatchObject({ code: "store_unavailable" })
})

test("a send that needs a new partition while their lock is held is refused; others continue", async () => {
  const { store, client, application, query } = await stage()
  await client.query("BEGIN")
  await client.query(`SELECT ${LOCK}`)
  const askedAt = performance.now()
  await expect(store.acceptMany([sample.message(application.id)])).rejects.toMatchObject({
    code: "store_unavailable",
    message: expect.stringMatching(/try again$/),
  })
  expect(performance.now() - askedAt).toBeLessThan(4000)
  expect(await store.check()).toMatchObject({ kind: "postgres" })
  await query("COMMIT")
  expect(await store.acceptMany([sample.message(application.id)])).toMatchObject([{ matched: 1 }])
})

test("the next partition is created before it is needed", async () => {
  const { url, store, client, application, query } = await stage()
  const later = sample.message(application.id, { receivedAt: NOW + HALF_DAY_MS })
  await store.acceptMany([sample.message(application.id, { receivedAt: NOW })])
  const next = `idempotency_${generationAt(NOW) + 1}`
  const isThere = async () => (await query("SELECT to_regclass($1) IS NOT NULL AS there", [next]))[0].there
  await expect.poll(isThere).toBe(true)
  const another = await openStore(url)
  await client.query("BEGIN")
  await client.query(`SELECT ${LOCK}`)
  expect(await store.acceptMany([later])).toMatchObject([{ matched: 1 }])
  // A process that has just started did not create it.
  expect(await another.acceptMany([{ ...later, id: sample.message("").id }])).toMatchObject([{ matched: 1 }])
  await query("COMMIT")
})

test("a read-only server counts as gone, is probed with backoff, and is found when it takes writes", async () => {
  const url = await freshDatabase()
  const name = new URL(url).pathname.slice(1)
  const { proxy, url: through } = await proxied(url)
  const client = await connect(url)
  const database = openDatabase(through)
  await client.query("CREATE TABLE written (at timestamptz)")
  const write = () => database.run(sql("INSERT INTO written VALUES (now())"), [])
  await write()
  await client.query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`)
  let ups = 0
  const up = new Promise<void>((resolve) =>
    database.onUp(() => {
      ups++
      resolve()
    }),
  )
  proxy.reset()
  const refusal = { code: "store_unavailable", message: expect.stringContaining("read-only (a standby?)") }
  await expect.poll(() => write().catch((error) => error)).toMatchObject(refusal)
  expect(ups).toBe(0)
  await client.query("SET default_transaction_read_only = off")
  await client.query(`ALTER DATABASE ${name} RESET default_transaction_read_only`)
  await up
  expect(await write()).toEqual([])
})

test("an outage that returns at once does not reset the backoff", async () => {
  const url = await freshDatabase()
  const { proxy, url: through } = await proxied(url)
  const database = openDatabase(through)
  await database.run(ONE, [])
  let ups = 0
  const startedAt = performance.now()
  // Whenever the server is back, every connection is lost again.
  await new Promise<void>((resolve) => {
    const stop = database.onUp(() => {
      if (++ups === 5) {
        stop()
        return resolve()
      }
      database.run(ONE, []).then(() => proxy.reset())
    })
    proxy.reset()
  })
  // 100, 200, 400, 800 and 1600 ms, each at least half.
  expect(performance.now() - startedAt).toBeGreaterThan(1500)
})

import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { expect, onTestFinished, test } from "vitest"
import {
  laneFetch,
  lanesOf,
  newest,
  ORG,
  OTHER_ORG,
  sample,
  settlement,
  storeConformance,
} from "../conformance.ts"
import type { LaneWake } from "../store.ts"
import { refuseOldSqlite } from "./connection.ts"
import { openSqliteStore } from "./store.ts"

function temporaryFile(): string {
  const folder = mkdtempSync(join(tmpdir(), "posthorn-store-"))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, "posthorn.db")
}

async function open(path: string, own = true) {
  const store = await openSqliteStore({ path, own, onLost() {} })
  onTestFinished(() => store.close())
  return store
}

storeConformance("sqlite", async () => {
  const path = temporaryFile()
  const store = await open(path)
  return {
    store,
    async reopen() {
      await store.kill()
      return open(path)
    },
    beside: () => open(path, false),
  }
})

const NOW = 1_900_000_000_000

test("a second owner is refused with the name of the first", async () => {
  const path = temporaryFile()
  const first = await open(path)
  await expect(open(path)).rejects.toMatchObject({
    code: "store_in_use",
    message: expect.stringContaining(`process ${process.pid}`),
  })
  await first.close()
  await open(path)
})

test("neither a long list nor a task delays a lookup", async () => {
  const path = temporaryFile()
  const store = await open(path)
  const application = sample.application()
  await store.createApplication(application)
  const db = new DatabaseSync(path)
  db.exec(`
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
    INSERT INTO messages (id, app_id, event_type, content_type, channels, tags, metadata, priority, received_at, matched, expunged, payload)
    SELECT 'msg_' || i, '${application.id}', 'a', 'application/json', '[]', '["t"]', '{}', 1, 0, 0, 0, x'' FROM n;
    INSERT INTO webhook_deliveries (id, app_id, webhook_id, message_id, event_type, target_url, received_at)
    SELECT 'dlv_' || seq, app_id, 'ep', id, event_type, 'u', 0 FROM messages`)
  db.close()
  const filter = { appId: application.id, tag: "nothing" }
  const [overMessages, overDeliveries] = [
    await store.createTask(sample.task({ action: "expunge", filter })),
    await store.createTask(sample.task({ action: "retry", filter })),
  ]
  const first = (name: string, done: Promise<unknown>) => done.then(() => name)
  for (const search of [
    () => store.countMessages(filter),
    () => store.readTaskMessages(overMessages.id, 200),
    () => store.readTask(overDeliveries.id, 200),
  ]) {
    const found = search()
    const lookup = store.getApplication(ORG, application.id)
    expect(await Promise.race([first("search", found), first("lookup", lookup)])).toBe("lookup")
    await found
  }
})

test("tokens of a later opening are above every earlier one", async () => {
  const path = temporaryFile()
  const store = await open(path)
  const first = await store.openTokens()
  await store.kill()
  expect(await (await open(path)).openTokens()).toBeGreaterThan(first + 1_000_000)
})

test("reports once that another program changed the file", async () => {
  const path = temporaryFile()
  const store = await open(path)
  const other = await open(path, false)
  await other.createApplication(sample.application())
  expect(await store.changedOutside()).toBe(true)
  expect(await store.changedOutside()).toBe(false)
})

test("a change by others that was reported in a rolled-back transaction is reported again", async () => {
  const path = temporaryFile()
  const store = await open(path)
  const other = await open(path, false)
  await other.createApplication(sample.application())
  const [changed, refused] = await Promise.allSettled([
    store.changedOutside(),
    store.cancelTask(ORG, {} as never, NOW),
  ])
  expect(refused.status).toBe("rejected")
  expect(changed).toEqual({ status: "fulfilled", value: true })
})

test("a call that fails writes nothing, and the other calls of its tick run once", async () => {
  const store = await open(temporaryFile())
  const application = sample.application()
  const { id } = application
  await store.createApplication(application)
  const eventId = "same"
  // The second time each call has a savepoint.
  for (const kept of [2, 4]) {
    const results = await Promise.allSettled([
      store.acceptMany([sample.message(id)]),
      store.acceptMany([sample.message(id, { eventId }), sample.message(id, { eventId })]),
      store.acceptMany([sample.message(id)]),
    ])
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"])
    expect(await store.listMessages({ appId: id }, newest(9), false)).toHaveLength(kept)
  }
})

test("a send in a user's transaction is refused", async () => {
  const store = await open(temporaryFile())
  await expect(store.acceptMany([sample.message("acme")], {})).rejects.toMatchObject({ field: "tx" })
})

test("a file of a newer program is refused and left as it is", async () => {
  const path = temporaryFile()
  await (await open(path)).close()
  const db = new DatabaseSync(path)
  db.exec("PRAGMA user_version = 999")
  db.close()
  await expect(open(path)).rejects.toMatchObject({
    code: "store_incompatible",
    message: expect.stringContaining("newer Posthorn"),
  })
})

test("a file that is no database is refused", async () => {
  const path = temporaryFile()
  const { writeFileSync } = await import("node:fs")
  writeFileSync(path, "this is not a database, and it is long enough to be looked at as one".repeat(20))
  await expect(open(path)).rejects.toMatchObject({ code: "store_failed" })
})

test.each(["3.51.2", "3.50.9", "3.9.0", "2.99.99"])("SQLite %s is too old", (version) => {
  expect(() => refuseOldSqlite(version)).toThrow(expect.objectContaining({ code: "store_incompatible" }))
})
test.each(["3.51.3", "3.52.0", "4.0.0"])("SQLite %s will do", (version) => {
  expect(() => refuseOldSqlite(version)).not.toThrow()
})

test("every commit is synced to a write-ahead log", async () => {
  const path = temporaryFile()
  await open(path)
  const db = new DatabaseSync(path)
  expect(db.prepare("PRAGMA journal_mode").get()).toEqual({ journal_mode: "wal" })
  db.close()
})

test("a reset typed as SQL clears the columns of the finished row, and Posthorn's retry keeps its age", async () => {
  const path = temporaryFile()
  const store = await open(path)
  const application = sample.application()
  const endpoint = sample.endpoint(application.id)
  await store.createApplication(application)
  await store.createEndpoint(endpoint)
  await store.acceptMany([sample.message(application.id, { maxAttempts: 1 })])
  const work = await lanesOf(store).fetch(laneFetch(endpoint.id, 1), NOW)
  await lanesOf(store).settle([settlement(endpoint.id, 1, work.deliveries[0]!, 500)])
  const db = new DatabaseSync(path)
  db.exec("UPDATE webhook_deliveries SET purge_at = 5, discarded_at = 6, stalls = 3")
  db.exec("UPDATE webhook_deliveries SET status = 'pending', attempt_count = 0 WHERE status = 'dead'")
  expect(db.prepare("SELECT * FROM webhook_deliveries").get()).toMatchObject({
    status: "pending",
    attempt_count: 0,
    dead_reason: null,
    next_retry_at: null,
    age_from: null,
    purge_at: null,
    discarded_at: null,
    stalls: 0,
    error_detail: "HTTP 500",
  })
  expect(() => db.exec("UPDATE webhook_deliveries SET next_retry_at = 'tomorrow'")).toThrow(
    /cannot store TEXT/,
  )
  db.close()
})

test("the view of jobs has each delivery once, with the limit of its own tenant's policy", async () => {
  const path = temporaryFile()
  const store = await open(path)
  for (const [orgId, maxAttempts] of [
    [ORG, 3],
    [OTHER_ORG, 9],
  ] as const) {
    const application = sample.application({ orgId })
    await store.createApplication(application)
    const policy = JSON.stringify({ maxAttempts })
    await store.putPolicy({ orgId, name: "mine", policy, updatedAt: NOW })
    await store.createEndpoint(sample.endpoint(application.id, { orgId, retryName: "mine" }))
    await store.acceptMany([sample.message(application.id, { orgId })])
  }
  const db = new DatabaseSync(path)
  const jobs = db.prepare("SELECT status, max_attempts FROM jobs ORDER BY max_attempts").all()
  expect(jobs.map((job) => ({ ...job }))).toEqual([
    { status: "pending", max_attempts: 3 },
    { status: "pending", max_attempts: 9 },
  ])
  db.close()
})

test.each([
  ["the database refuses", {}],
  ["cannot be copied to the thread", () => {}],
])("a call that %s fails alone", async (_what, argument) => {
  const store = await open(temporaryFile())
  const application = sample.application()
  await store.createApplication(application)
  const results = await Promise.allSettled([
    store.acceptMany([sample.message(application.id)]),
    store.cancelTask(ORG, argument as never, NOW),
    store.acceptMany([sample.message(application.id)]),
  ])
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"])
  expect(await store.listMessages({ appId: application.id }, newest(9), false)).toHaveLength(2)
})

test("a wake has the transport of its endpoint's URL, from an accept and from a scan", async () => {
  const store = await open(temporaryFile())
  const application = sample.application()
  await store.createApplication(application)
  const [http, relay] = ["https://a.example", "relay://hub"].map((url) =>
    sample.endpoint(application.id, { url }),
  )
  for (const endpoint of [http!, relay!]) await store.createEndpoint(endpoint)
  const transports = (lanes: readonly LaneWake[]) =>
    Object.fromEntries(lanes.map(({ endpointId, transport }) => [endpointId, transport]))
  const [accepted] = await store.acceptMany([sample.message(application.id)])
  expect(transports(accepted!.lanes)).toEqual({ [http!.id]: "http", [relay!.id]: "relay" })
  expect(transports(await store.scanLanes(null, 9))).toEqual(transports(accepted!.lanes))
})

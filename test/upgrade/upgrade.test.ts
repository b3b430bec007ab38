/** Data of the previous version, killed in the middle of a request, is complete after an upgrade, and is delivered. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { gunzipSync } from "node:zlib"
import pg from "pg"
import { expect, onTestFinished, test } from "vitest"
import type { Clock } from "../../src/core/clock.ts"
import { type Posthorn, type PosthornOptions, verifySignature } from "../../src/index.ts"
import { openPosthorn } from "../../src/posthorn.ts"
import { KeyRing } from "../../src/resources/key-ring.ts"
import { MIGRATIONS as POSTGRES_MIGRATIONS } from "../../src/store/postgres/schema.ts"
import { MIGRATIONS as SQLITE_MIGRATIONS } from "../../src/store/sqlite/schema.ts"
import { TestClock } from "../support/clock.ts"
import { LOOPBACK, temporaryFolder } from "../support/harness.ts"
import { Receiver } from "../support/receiver.ts"
import { freshDatabase } from "../support/servers/postgres.ts"
import { ENCRYPTION_KEY, type Facts, LATER, RETRY, SECRET } from "./facts.ts"

const unpacked = (name: string) => gunzipSync(readFileSync(new URL(name, import.meta.url)))
const FACTS: { sqlite: Facts; postgres: Facts } = JSON.parse(
  readFileSync(new URL("facts.json", import.meta.url), "utf8"),
)
const RESET = "UPDATE webhook_deliveries SET status = 'pending', attempt_count = 0 WHERE status = 'dead'"
/** The endpoints whose messages wait for `LATER`; the second is ordered. */
const DEFERRED = ["later", "later-line"]
/** The version before had these; a fixture that was made anew by this one would prove nothing. */
const BEFORE = { sqlite: 3, postgres: 5 }

async function open(
  store: string,
  more: Partial<PosthornOptions> = {},
  parts: { clock?: Clock } = {},
): Promise<Posthorn> {
  const options = { retry: RETRY, encryptionKey: ENCRYPTION_KEY, egress: LOOPBACK, logger: "silent" as const }
  const posthorn = await openPosthorn(
    { store, ...options, closeTimeoutMs: 0, pollIntervalMs: 200, ...more },
    parts,
  )
  onTestFinished(() => posthorn.close())
  return posthorn
}

/** Everything is still there; then it is delivered to another receiver. `sql` is what an operator types. */
async function upgrade(store: string, { token, sent }: Facts, sql: (text: string) => Promise<unknown>) {
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  const posthorn = await open(store, { deliver: false })
  expect(await posthorn.stats()).toEqual({ pending: 8, failed: 1, delivered: 2, dead: 1, calledOff: 0 })
  expect(await posthorn.policies.get("patient")).toMatchObject({ policy: { delays: { list: [7200] } } })
  expect(await new KeyRing(posthorn.context.store, posthorn.context.clock).verify(token)).toMatchObject({
    ok: true,
  })
  const { data: endpoints } = await posthorn.endpoints.list("acme")
  expect(endpoints.map(({ uid }) => uid).sort()).toEqual(Object.keys(sent).sort())
  for (const { uid, url } of endpoints)
    await posthorn.endpoints.update("acme", uid!, { url: receiver.url(new URL(url).pathname) })
  const { data: messages } = await posthorn.messages.list("acme")
  expect(messages.map(({ id }) => id).sort()).toEqual(Object.values(sent).flat().sort())
  const { data: attempts } = await posthorn.attempts.list({ message: sent.dead![0]! })
  expect(attempts).toMatchObject([{ status: "failed", responseStatus: 500 }])
  await posthorn.close()

  // The retry was two hours away when the fixture was made.
  const later = Date.now() + 3_600_000
  await sql(`UPDATE webhook_deliveries SET next_retry_at = ${later} WHERE status = 'failed'`)
  const again = await open(store)
  const { data: waiting } = await again.deliveries.list({ message: sent.failed![0]! })
  expect(waiting).toMatchObject([{ status: "failed", attemptCount: 1 }])
  await again.deliveries.retry(waiting[0]!.id)
  await sql(RESET)
  for (const uid of ["paused", "line"]) await again.endpoints.resume("acme", uid)
  for (const [uid, ids] of Object.entries(sent)) {
    if (uid === "delivered" || DEFERRED.includes(uid)) continue
    const requests = await receiver.arrived(`/${uid}`, ids.length)
    const arrived = requests.map(({ id }) => id)
    expect(uid === "line" ? arrived : arrived.sort()).toEqual(uid === "line" ? ids : ids.toSorted())
    for (const { headers, body } of requests) verifySignature(SECRET, headers, body)
  }
  await expect
    .poll(() => again.stats(), { timeout: 10_000 })
    .toMatchObject({ pending: 2, failed: 0, delivered: 10, dead: 0 })
  expect(receiver.to("/delivered")).toEqual([])
  for (const uid of DEFERRED) {
    const { data } = await again.deliveries.list({ message: sent[uid]![0]! })
    expect(data).toMatchObject([{ status: "pending", attemptCount: 0, nextRetryAt: new Date(LATER) }])
    expect(receiver.to(`/${uid}`)).toEqual([])
  }
  await again.close()

  const atLast = await open(store, {}, { clock: new TestClock(LATER) })
  for (const uid of DEFERRED)
    expect(await receiver.arrived(`/${uid}`, 1)).toMatchObject([{ id: sent[uid]![0] }])
  await expect.poll(() => atLast.stats(), { timeout: 10_000 }).toMatchObject({ pending: 0, delivered: 12 })
  await atLast.close()
}

test("a SQLite file", async () => {
  const file = join(temporaryFolder(), "posthorn.db")
  writeFileSync(file, unpacked("posthorn.db.gz"))
  const operator = new DatabaseSync(file, { timeout: 5000 })
  onTestFinished(() => operator.close())
  const version = () => operator.prepare("PRAGMA user_version").get()!.user_version
  expect(version()).toBe(BEFORE.sqlite)
  await upgrade(`sqlite:${file}`, FACTS.sqlite, async (text) => operator.exec(text))
  expect(version()).toBe(SQLITE_MIGRATIONS.length)
})

test("a PostgreSQL database, whose tables stay in public", async () => {
  const url = await freshDatabase()
  const operator = new pg.Client(url)
  await operator.connect()
  onTestFinished(() => operator.end())
  await operator.query(unpacked("posthorn.sql.gz").toString())
  await operator.query("RESET ALL")
  const applied = async () => (await operator.query("SELECT FROM posthorn_migrations")).rowCount
  expect(await applied()).toBe(BEFORE.postgres)
  await upgrade(url, FACTS.postgres, (text) => operator.query(text))
  expect(await applied()).toBe(POSTGRES_MIGRATIONS.length)
  const { rows } = await operator.query("SELECT to_regnamespace('posthorn') AS schema")
  expect(rows).toEqual([{ schema: null }])
  // A client whose search path leads elsewhere.
  const posthorn = await open(url)
  await operator.query("SET search_path TO pg_temp")
  await operator.query("BEGIN")
  await posthorn.send("acme", { eventType: "delivered", payload: {} }, { tx: operator })
  await operator.query("COMMIT")
  await expect.poll(() => posthorn.stats(), { timeout: 10_000 }).toMatchObject({ delivered: 13 })
})

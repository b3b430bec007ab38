import { expect, test } from "vitest"
import { connect, openStore } from "../../../test/support/postgres-store.ts"
import { freshDatabase } from "../../../test/support/servers/postgres.ts"
import { sample } from "../conformance.ts"
import { PgSchema } from "./pg-schema.ts"

const schema = new PgSchema("a")

test.each([
  [
    "SELECT * FROM messages m JOIN  endpoints e USING (id)",
    'SELECT * FROM "a".messages m JOIN  "a".endpoints e USING (id)',
  ],
  ["INSERT INTO lanes (id) SELECT id FROM x", 'INSERT INTO "a".lanes (id) SELECT id FROM x'],
  ["UPDATE lanes SET token = lanes.token", 'UPDATE "a".lanes SET token = lanes.token'],
  [
    "DELETE FROM attempts_live USING messages\nWHERE true",
    'DELETE FROM "a".attempts_live USING "a".messages\nWHERE true',
  ],
  ["DROP TABLE webhook_deliveries_done_aside_20000", 'DROP TABLE "a".webhook_deliveries_done_aside_20000'],
  [
    "ALTER TABLE attempts ATTACH PARTITION attempts_7",
    'ALTER TABLE "a".attempts ATTACH PARTITION "a".attempts_7',
  ],
  [
    "SELECT * FROM posthorn_renew(1), posthorn_id('x')",
    'SELECT * FROM "a".posthorn_renew(1), "a".posthorn_id(\'x\')',
  ],
  ["SELECT 'lanes'::regclass, 'lanes'", "SELECT '\"a\".lanes'::regclass, 'lanes'"],
  ["SELECT last_value FROM message_seq", 'SELECT last_value FROM "a".message_seq'],
  ["SELECT x IS DISTINCT FROM messages.x, d.attempts FROM messages_gone", null],
  ["SELECT FROM other.messages; SELECT FROM pg_class FOR UPDATE", null],
])("%s is bound", (text, bound) => {
  expect(schema.bindText(text)).toBe(bound ?? text)
})

test("a name is quoted wherever it stands", () => {
  const odd = new PgSchema(`o"d'd$&`)
  expect(odd.bindText("SELECT FROM meta")).toBe(`SELECT FROM "o""d'd$&".meta`)
  expect(odd.lock("partitions")).toBe(`hashtext('posthorn partitions in o"d''d$&')`)
})

test("every function that runs statements runs them in its schema, and looks for temporary tables last", async () => {
  const url = await freshDatabase()
  await openStore(`${url}?schema=red`)
  const { rows } = await (await connect(url)).query(`
    SELECT p.proname, p.proconfig FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
     WHERE p.pronamespace = 'red'::regnamespace AND l.lanname = 'plpgsql'`)
  expect(rows.length).toBeGreaterThan(5)
  for (const { proname, proconfig } of rows) expect(proconfig, proname).toContain("search_path=red, pg_temp")
})

test("tables that are found on the search path are used where they are", async () => {
  const url = await freshDatabase()
  const application = sample.application()
  await (await openStore(`${url}?schema=public`)).createApplication(application)
  const { orgId, id } = application
  const found = await openStore(url)
  expect(found.database.schema.name).toBe("public")
  expect(await found.getApplication(orgId, id)).toMatchObject({ id })
  const named = await openStore(`${url}?schema=posthorn`)
  expect(await named.getApplication(orgId, id)).toBe(null)
})

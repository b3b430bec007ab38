/** Posthorn's tables are in a schema of their own: they meet neither the user's tables nor those of another Posthorn. */
import pg from "pg"
import { describe, expect, onTestFinished, test } from "vitest"
import { openPosthorn } from "../../src/posthorn.ts"
import { freshDatabase } from "../support/servers/postgres.ts"
import { ON_SHARED_SERVERS, open, Site } from "./site.ts"

/** A connection of the user's: with the search path that PostgreSQL gives it. */
async function userOf(url: string): Promise<pg.Client> {
  const client = new pg.Client(url)
  await client.connect()
  onTestFinished(() => client.end())
  return client
}

/** Without the partitions, which are made when a row needs them and ahead of the next. */
const tablesOf = async (client: pg.Client, schema: string) => {
  const text = `
    SELECT relname FROM pg_class
     WHERE relnamespace = $1::regnamespace AND relkind IN ('r', 'p', 'v', 'S') AND relname !~ '_[0-9]+$'`
  return (await client.query(text, [schema])).rows.map(({ relname }) => relname as string).sort()
}

/** Tables of the user's that are called as ours are, and are nothing like them. */
const NAMESAKES = [
  "applications",
  "endpoints",
  "messages",
  "attempts",
  "lanes",
  "lane_wakes",
  "meta",
  "tasks",
  "jobs",
]
  .concat(["entries", "policies", "workers", "webhook_deliveries", "webhook_deliveries_live", "idempotency"])
  .concat(["application_routes", "endpoint_subscriptions"])

const MESSAGE = { eventType: "a", payload: {} }

describe.each(ON_SHARED_SERVERS)("on %s", (_, shared) => {
  /** Without Posthorn's tables: the test sees where they go. */
  const place = async () => ({ ...(await shared()), store: await freshDatabase() })

  test("everything is in the schema posthorn, beside tables of the user's with the same names", async () => {
    const there = await place()
    const user = await userOf(there.store)
    for (const name of NAMESAKES) {
      await user.query(`CREATE TABLE ${name} (mine int)`)
      await user.query(`CREATE TEMPORARY TABLE ${name} (mine int)`)
    }
    const site = await Site.open(there)
    await site.endpoint("a")
    await open(there)
    await user.query("BEGIN")
    await user.query("INSERT INTO public.messages VALUES (1)")
    await site.sender.send("acme", { ...MESSAGE, idempotencyKey: "1" }, { tx: user })
    await user.query("COMMIT")
    await site.send("a")
    await site.receiver.arrived("/a", 2)
    await expect.poll(() => site.sender.stats()).toMatchObject({ delivered: 2 })
    // The trigger that revives a delivery runs in the user's session, whose temporary tables come first there.
    const reset = "UPDATE posthorn.webhook_deliveries SET status = 'pending', attempt_count = 0"
    expect((await user.query(reset)).rowCount).toBe(2)
    await site.receiver.arrived("/a", 4)
    await user.query("UPDATE posthorn.endpoints SET disabled = true")
    expect(await tablesOf(user, "public")).toEqual(NAMESAKES.toSorted())
    for (const name of NAMESAKES) {
      const expected = name === "messages" ? [{ mine: 1 }] : []
      expect((await user.query(`SELECT * FROM public.${name}`)).rows, name).toEqual(expected)
      expect((await user.query(`SELECT * FROM pg_temp.${name}`)).rows, name).toEqual([])
    }
  })

  test("two in two schemas of one database have nothing to do with each other", async () => {
    const { store, ...rest } = await place()
    const sites = await Promise.all(
      [{ store: `${store}?schema=red` }, { store, schema: "Blue-2" }].map(async (one) => {
        const there = { ...rest, ...one }
        const site = await Site.open(there)
        await site.endpoint("a")
        await open(there)
        return site
      }),
    )
    const [red, blue] = sites as [Site, Site]
    const sent = await red.send("a")
    await red.receiver.arrived("/a", 1)
    const others = [await blue.send("a"), await blue.send("a")]
    await blue.receiver.arrived("/a", 2)
    expect(red.receiver.requests.map(({ id }) => id)).toEqual([sent])
    expect(blue.receiver.requests.map(({ id }) => id).sort()).toEqual(others.sort())
    const user = await userOf(store)
    expect(await tablesOf(user, "public")).toEqual([])
    expect((await user.query("SELECT id FROM red.messages")).rows).toEqual([{ id: sent }])
    expect((await user.query('SELECT id FROM "Blue-2".messages')).rowCount).toBe(2)
    expect(await tablesOf(user, '"Blue-2"')).toEqual(await tablesOf(user, "red"))
  })

  test("an operator's reset works as typed with the search path set", async () => {
    const site = await Site.open(await place())
    await site.endpoint("a", { retry: { delays: [60], maxAttempts: 1 } })
    await open(site.place)
    site.receiver.queue("/a", 500)
    await site.send("a")
    await expect.poll(() => site.sender.stats()).toMatchObject({ dead: 1 })
    const user = await userOf(site.place.store)
    await user.query("SET search_path TO posthorn")
    await user.query(
      "UPDATE webhook_deliveries SET status = 'pending', attempt_count = 0 WHERE status = 'dead'",
    )
    await site.receiver.arrived("/a", 2)
  })
})

test("retention, the making of partitions and the start of one do not wait for those of another", async () => {
  const url = await freshDatabase()
  const user = await userOf(url)
  await user.query("BEGIN")
  for (const what of ["migrations", "partitions", "maintenance", "migrate"])
    await user.query("SELECT pg_advisory_xact_lock(hashtext($1))", [`posthorn ${what} in red`])
  const posthorn = await open({ store: `${url}?schema=blue`, maintenanceIntervalMs: 10 })
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  await posthorn.send("acme", { ...MESSAGE, idempotencyKey: "makes a partition" })
})

test.each([
  ["sqlite::memory:", "red", "schema cannot be given with SQLite: it is for a store on PostgreSQL"],
  [
    "postgres://h/d?schema=blue",
    "red",
    'schema is "red", and the URL of the store says "blue": give one of them',
  ],
  ["postgres://h/d", "1st", expect.stringMatching(/^schema must be a name of at most 63/)],
  ["postgres://h/d", "pg_own", expect.stringMatching(/^schema must be a name/)],
  ["postgres://h/d", 'a"b', expect.stringMatching(/^schema must be a name/)],
  ["postgres://h/d", "a".repeat(64), expect.stringMatching(/^schema must be a name/)],
  ["postgres://h/d?schema=", undefined, expect.stringMatching(/^schema must be a name/)],
  ["postgres://h/d", 7, "schema must be the name of a schema on PostgreSQL"],
])("with %s the schema %j is refused", async (store, schema, message) => {
  const options = { store, ...(schema === undefined ? {} : { schema: schema as string }) }
  await expect(openPosthorn({ ...options, logger: "silent" })).rejects.toMatchObject({
    code: "invalid_input",
    field: "schema",
    message,
  })
})

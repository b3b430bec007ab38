/** A send in the user's own transaction leaves that transaction as it was, but for the message. */
import pg from "pg"
import { expect, onTestFinished, test } from "vitest"
import { freshDatabase } from "../../../test/support/servers/postgres.ts"
import { sample } from "../conformance.ts"
import { openPostgresStore } from "./store.ts"

async function setUp() {
  const url = await freshDatabase()
  const store = await openPostgresStore({ url, name: "posthorn test" })
  const client = new pg.Client(url)
  await client.connect()
  onTestFinished(async () => {
    await client.end()
    await store.close()
  })
  const application = sample.application()
  await store.createApplication(application)
  await store.createEndpoint(sample.endpoint(application.id))
  const messages = () => store.listMessages({ appId: application.id }, { limit: 9, before: null })
  return { url, store, client, appId: application.id, messages }
}

test("how long its own statements wait for a lock is as before", async () => {
  const { store, client, appId } = await setUp()
  await client.query("BEGIN")
  await store.accept([sample.message(appId)], client)
  expect((await client.query("SHOW lock_timeout")).rows).toEqual([{ lock_timeout: "0" }])
  await client.query("COMMIT")
})

test("a batch of which one is refused leaves nothing, and the transaction goes on", async () => {
  const { store, client, appId, messages } = await setUp()
  await store.accept([sample.message(appId, { eventId: "e1" })])
  await client.query("BEGIN")
  const batch = [sample.message(appId), sample.message(appId, { eventId: "e1" })]
  await expect(store.accept(batch, client)).rejects.toMatchObject({ code: "conflict", field: "eventId" })
  await store.accept([sample.message(appId)], client)
  await client.query("COMMIT")
  expect(await messages()).toHaveLength(2)
})

test("a statement that PostgreSQL refuses does not end the transaction either", async () => {
  const { store, client, appId, messages } = await setUp()
  await client.query("BEGIN")
  const nul = sample.message(appId, { eventType: "a\0b" })
  await expect(store.accept([nul], client)).rejects.toMatchObject({ code: "invalid_input" })
  await store.accept([sample.message(appId)], client)
  await client.query("COMMIT")
  expect(await messages()).toHaveLength(1)
})

test("a pool, a client outside of a transaction, and anything else are refused", async () => {
  const { url, store, client, appId, messages } = await setUp()
  const pool = new pg.Pool({ connectionString: url })
  onTestFinished(() => pool.end())
  for (const tx of [pool, client])
    await expect(store.accept([sample.message(appId)], tx)).rejects.toMatchObject({
      code: "invalid_input",
      field: "tx",
      message: expect.stringContaining("BEGIN"),
    })
  await expect(store.accept([sample.message(appId)], {})).rejects.toMatchObject({ field: "tx" })
  expect(await messages()).toEqual([])
})

test("many messages for many endpoints are accepted in statements that end in time", async () => {
  const { store, client, appId } = await setUp()
  await client.query(
    `
    INSERT INTO endpoints (
      id, app_id, url, description, headers, metadata, ordered, disabled, paused, secrets, version, created_at, updated_at
    ) SELECT 'ep_' || i, $1, 'http://x', '', '{}', '{}', false, false, false, '', 1, 0, 0 FROM generate_series(1, 499) i`.replace(
      "$1",
      `'${appId}'`,
    ),
  )
  const accepted = await Promise.all(Array.from({ length: 60 }, () => store.accept([sample.message(appId)])))
  expect(accepted.map(([one]) => one!.matched)).toEqual(Array.from({ length: 60 }, () => 500))
})

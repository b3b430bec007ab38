/** A send in the user's own transaction only adds the message to it. */
import pg from "pg"
import { expect, onTestFinished, test } from "vitest"
import { stage } from "../../../test/support/postgres-store.ts"
import { newest, sample } from "../conformance.ts"

const page = newest(9)

test("the transaction keeps its own lock timeout", async () => {
  const { store, client, application } = await stage()
  await client.query("BEGIN")
  await store.acceptMany([sample.message(application.id)], client)
  expect((await client.query("SHOW lock_timeout")).rows).toEqual([{ lock_timeout: "0" }])
  await client.query("COMMIT")
})

test("a batch with a refused message writes nothing, and the transaction continues", async () => {
  const { store, client, application } = await stage()
  await store.acceptMany([sample.message(application.id, { eventId: "e1" })])
  await client.query("BEGIN")
  const batch = [sample.message(application.id), sample.message(application.id, { eventId: "e1" })]
  await expect(store.acceptMany(batch, client)).rejects.toMatchObject({ code: "conflict", field: "eventId" })
  await store.acceptMany([sample.message(application.id)], client)
  await client.query("COMMIT")
  expect(await store.listMessages({ appId: application.id }, page, false)).toHaveLength(2)
})

test("a statement that PostgreSQL refuses does not end the transaction either", async () => {
  const { store, client, application } = await stage()
  await client.query("BEGIN")
  const nul = sample.message(application.id, { eventType: "a\0b" })
  await expect(store.acceptMany([nul], client)).rejects.toMatchObject({ code: "invalid_input" })
  await store.acceptMany([sample.message(application.id)], client)
  await client.query("COMMIT")
  expect(await store.listMessages({ appId: application.id }, page, false)).toHaveLength(1)
})

test("a pool, a client outside of a transaction, and anything else are refused", async () => {
  const { url, store, client, application } = await stage()
  const pool = new pg.Pool({ connectionString: url })
  onTestFinished(() => pool.end())
  for (const tx of [pool, client])
    await expect(store.acceptMany([sample.message(application.id)], tx)).rejects.toMatchObject({
      code: "invalid_input",
      field: "tx",
      message: expect.stringContaining("BEGIN"),
    })
  await expect(store.acceptMany([sample.message(application.id)], {})).rejects.toMatchObject({ field: "tx" })
  expect(await store.listMessages({ appId: application.id }, page, false)).toEqual([])
})

test("many messages for many endpoints are accepted in statements that end in time", async () => {
  const { store, client, application } = await stage()
  await client.query(
    `
    INSERT INTO endpoints (
      id, org_id, app_id, url, description, headers, metadata, ordered, disabled, paused, secrets, version, created_at, updated_at
    ) SELECT 'ep_' || i, 'org_1', $1, 'http://x', '', '{}', '{}', false, false, false, '', 1, 0, 0 FROM generate_series(1, 499) i`.replace(
      "$1",
      `'${application.id}'`,
    ),
  )
  const accepted = await Promise.all(
    Array.from({ length: 60 }, () => store.acceptMany([sample.message(application.id)])),
  )
  expect(accepted.map(([one]) => one!.matched)).toEqual(Array.from({ length: 60 }, () => 500))
})

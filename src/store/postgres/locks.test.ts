/** Somebody's open transaction: it holds up what needs the same rows, for a while, and nothing else. */
import pg from "pg"
import { expect, onTestFinished, test } from "vitest"
import { freshDatabase } from "../../../test/support/servers/postgres.ts"
import type { PosthornError } from "../../core/errors.ts"
import { sample, settlement } from "../conformance.ts"
import { openPostgresStore } from "./store.ts"

const NOW = 1_900_000_000_000

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
  const endpoint = sample.endpoint(application.id)
  await store.createApplication(application)
  await store.createEndpoint(endpoint)
  return { store, client, appId: application.id, endpointId: endpoint.id }
}

test("a send whose key an open transaction holds is refused in good time, and others of the same moment are not", async () => {
  const { store, client, appId } = await setUp()
  const keyed = () =>
    sample.message(appId, { idempotency: { key: Buffer.alloc(16, 1), digest: Buffer.alloc(16, 2) } })
  await client.query("BEGIN")
  const [held] = await store.accept([keyed()], client)
  const same = store.accept([keyed()]).catch((error: PosthornError) => error)
  const others = [1, 2, 3].map(() => store.accept([sample.message(appId)]))
  expect(await same).toMatchObject({
    code: "store_unavailable",
    message: expect.stringContaining("try again"),
  })
  for (const [accepted] of await Promise.all(others)) expect(accepted).toMatchObject({ matched: 1 })
  await client.query("COMMIT")
  expect(await store.accept([keyed()])).toMatchObject([{ messageId: held!.messageId, duplicate: true }])
})

test("a lane that an operator has locked is settled when the lock is gone", async () => {
  const { store, client, appId, endpointId } = await setUp()
  await store.accept([sample.message(appId)])
  const ask = { endpointId, token: 1, limit: 9, starting: 9, retryShare: 0, knownVersion: null }
  const [work] = await store.fetch([ask], NOW)
  const outcome = settlement(endpointId, 1, work!.deliveries[0]!, 200)
  await client.query("BEGIN")
  await client.query("SELECT FROM lanes FOR UPDATE")
  await expect(store.settle([outcome])).rejects.toMatchObject({ code: "store_unavailable" })
  await client.query("COMMIT")
  expect(await store.settle([outcome])).toEqual(["applied"])
})

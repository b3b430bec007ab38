/** An open transaction delays calls that need the same rows for a limited time, and nothing else. */
import { expect, test } from "vitest"
import { fetchOf, loseAnswer, NOW, stage } from "../../../test/support/postgres-store.ts"
import { toBuffer } from "../../core/bytes.ts"
import type { PosthornError } from "../../core/errors.ts"
import { lanesOf, newest, sample, settlement } from "../conformance.ts"

test("a send whose key an open transaction has written is refused in time, and concurrent sends are not", async () => {
  const { store, client, application } = await stage()
  const keyed = () =>
    sample.message(application.id, { idempotency: { key: Buffer.alloc(16, 1), digest: Buffer.alloc(16, 2) } })
  await client.query("BEGIN")
  const [held] = await store.acceptMany([keyed()], client)
  const same = store.acceptMany([keyed()]).catch((error: PosthornError) => error)
  const others = [1, 2, 3].map(() => store.acceptMany([sample.message(application.id)]))
  expect(await same).toMatchObject({
    code: "store_unavailable",
    message: expect.stringContaining("try again"),
  })
  for (const [accepted] of await Promise.all(others)) expect(accepted).toMatchObject({ matched: 1 })
  await client.query("COMMIT")
  expect(await store.acceptMany([keyed()])).toMatchObject([{ messageId: held!.messageId, duplicate: true }])
})

test("a lane that an operator has locked is settled when the lock is gone", async () => {
  const { store, client, application, endpoint } = await stage()
  await store.acceptMany([sample.message(application.id)])
  const ask = fetchOf(endpoint)
  const work = await lanesOf(store).fetch(ask, NOW)
  const outcome = settlement(endpoint.id, 1, work.deliveries[0]!, 200)
  await client.query("BEGIN")
  await client.query("SELECT FROM lanes FOR UPDATE")
  await expect(lanesOf(store).settle([outcome])).rejects.toMatchObject({ code: "store_unavailable" })
  await client.query("COMMIT")
  expect(await lanesOf(store).settle([outcome])).toEqual(["applied"])
})

test("a locked delivery is busy, and the others of its batch are settled", async () => {
  const { store, client, application, endpoint } = await stage()
  for (let n = 0; n < 3; n++) await store.acceptMany([sample.message(application.id)])
  const ask = fetchOf(endpoint)
  const work = await lanesOf(store).fetch(ask, NOW)
  const outcomes = work.deliveries.map((one) => settlement(endpoint.id, 1, one, 200))
  await client.query("BEGIN")
  await client.query("UPDATE webhook_deliveries SET error_detail = 'looked at' WHERE seq = $1", [
    outcomes[1]!.delivery.seq,
  ])
  expect(await lanesOf(store).settle(outcomes)).toEqual(["applied", "busy", "applied"])
  await client.query("COMMIT")
  expect(await lanesOf(store).settle([outcomes[1]!])).toEqual(["applied"])
})

test("deliveries of a lost reply are fetched again, and those in hand are not", async () => {
  const { store, application, endpoint } = await stage()
  for (let n = 0; n < 3; n++) await store.acceptMany([sample.message(application.id)])
  const { endpointId, token, want } = fetchOf(endpoint)
  const fetch = async (limit: number) =>
    (await lanesOf(store).fetch({ endpointId, token, want: { ...want, limit } }, NOW)).deliveries.map(
      ({ seq }) => seq,
    )
  expect(await fetch(1)).toEqual([1])
  loseAnswer(store, "lanes.fetch")
  await expect(fetch(9)).rejects.toThrow("the connection broke")
  expect(await fetch(9)).toEqual([2, 3])
  expect(await fetch(9)).toEqual([])
  expect(await store.listAttempts({}, newest(9))).toEqual([])
})

test("a payload that was expunged is null, among large ones that are read apart", async () => {
  const { store, application, endpoint } = await stage()
  const messages = [1, 2, 3].map((n) => sample.message(application.id, { payload: Buffer.alloc(900_000, n) }))
  for (const message of messages) await store.acceptMany([message])
  await store.expungeMessage(application.id, messages[1]!.id)
  const work = await lanesOf(store).fetch(fetchOf(endpoint), NOW)
  expect(work.deliveries.map(({ payload }) => payload?.[0] ?? null)).toEqual([1, null, 3])
})

test("large payloads come whole, though they are read apart from the rest", async () => {
  const { store, application, endpoint } = await stage()
  const payloads = [1, 2, 3, 4, 5].map((n) => Buffer.alloc(700_000 * n, n))
  for (const payload of payloads) await store.acceptMany([sample.message(application.id, { payload })])
  const ask = fetchOf(endpoint)
  const work = await lanesOf(store).fetch(ask, NOW)
  expect(work.deliveries.map(({ payload }) => Buffer.compare(toBuffer(payload!), payloads.shift()!))).toEqual(
    [0, 0, 0, 0, 0],
  )
})

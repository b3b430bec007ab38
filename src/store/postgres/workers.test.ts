/** The list of workers, by their leases. */
import { expect, test } from "vitest"
import { NOW, stage } from "../../../test/support/postgres-store.ts"
import { laneFetch, lanesOf } from "../conformance.ts"

test("a worker whose lease has expired is not alive, and what it holds is still counted", async () => {
  const { store, query, send, endpoint, application } = await stage()
  const ends = async (name: string, lease: string) =>
    (
      await query("INSERT INTO workers (lease_until, name) VALUES (now() + $1, $2) RETURNING id", [
        lease,
        name,
      ])
    )[0]!
  const { id: gone } = await ends("gone", "-1 second")
  await ends("idle", "1 hour")
  await query("UPDATE lanes SET owner = $1, token = 7", [gone])
  await send(2)
  await lanesOf(store).fetch(laneFetch(endpoint.id, 7), NOW)
  expect(await store.listWorkers(application.orgId)).toMatchObject([
    { name: "gone", alive: false, aliveUntil: expect.any(Number), lanes: 1, inHand: 2 },
    { name: "idle", alive: true, lanes: 0, inHand: 0 },
  ])
})

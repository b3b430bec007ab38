/** The answer of a settle may arrive later than its consequences: a retry is then fetched before its failure is known. */
import type { ServerResponse } from "node:http"
import { expect, onTestFinished, test } from "vitest"
import { openPosthorn } from "../../src/posthorn.ts"
import type { Store } from "../../src/store/store.ts"
import { LOOPBACK } from "../support/harness.ts"
import { migratedDatabase } from "../support/migrated-database.ts"
import { wrapLanes } from "../support/wrap-lanes.ts"
import { Site } from "./site.ts"

test("a retry that is fetched before the answer to the settle of its failure is sent once", async () => {
  const site = await Site.open({ store: await migratedDatabase() })
  await site.endpoint("lane")
  const told = Promise.withResolvers<void>()
  let settles = 0
  /** The first answer is held back; the database has it all the same. */
  const late = (store: Store): Store =>
    wrapLanes(store, (session) => ({
      async settleIfClaimed(outcomes) {
        const isFirst = settles++ === 0
        const results = await session.settleIfClaimed(outcomes)
        if (isFirst) await told.promise
        return results
      },
    }))
  const posthorn = await openPosthorn(
    { ...site.place, retry: { delays: [0.001], maxAttempts: 3 }, logger: "silent", egress: LOOPBACK },
    { wrapStore: late },
  )
  onTestFinished(() => posthorn.close())

  const held: ServerResponse[] = []
  site.receiver.queue("/lane", 500)
  const first = await site.send("lane")
  site.receiver.always("/lane", ({ id }, response) => (id === first ? held.push(response) : response.end()))
  const timesSent = () => site.receiver.to("/lane").filter(({ id }) => id === first).length
  await site.receiver.arrived("/lane", 1)
  await expect.poll(() => site.sender.stats()).toMatchObject({ failed: 1 })
  await site.send("lane")
  await expect.poll(timesSent).toBe(2)
  told.resolve()
  // Each of these makes the worker look for more, beside the request in flight.
  for (let delivered = 2; delivered < 6; delivered++) {
    await site.send("lane")
    await expect.poll(() => site.sender.stats()).toMatchObject({ delivered })
  }
  expect(timesSent()).toBe(2)
  for (const response of held) response.end()
  await expect
    .poll(() => site.sender.stats())
    .toEqual({ pending: 0, failed: 0, delivered: 6, dead: 0, calledOff: 0 })
})

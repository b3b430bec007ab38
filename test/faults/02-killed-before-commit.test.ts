/** Fault 2: a worker is killed between a receiver's answer and the commit of it. Another one repeats the request, once. */
import { describe, expect, test } from "vitest"
import { proxied } from "../multi-process/proxied.ts"
import { ON_SHARED_SERVERS, Site } from "../multi-process/site.ts"
import { WorkerProcess } from "../support/workers.ts"

const LEASE_MS = 2000
const LANES = ["plain", "ordered"]

describe.each(ON_SHARED_SERVERS)("on %s", (_, place) => {
  test("a delivery that was answered and not settled is repeated once, with the same id, within the lease and five seconds", async () => {
    const site = await Site.open(await place())
    const endpoints = [await site.endpoint("plain"), await site.endpoint("ordered", { ordered: true })]
    const { proxy, place: through } = await proxied(site.place)
    const doomed = await WorkerProcess.start({ ...through, leaseMs: LEASE_MS, tells: true })
    const answers = LANES.map((lane) => site.receiver.hold(`/${lane}`))
    const sent = [await site.send("plain"), await site.send("ordered"), await site.send("ordered")]
    for (const lane of LANES) await site.receiver.arrived(`/${lane}`, 1)
    // It has nothing to take over before the kill: the lanes are the other one's.
    await site.worker({ leaseMs: LEASE_MS })

    proxy.blackHole()
    for (const answer of answers) answer(200)
    await expect.poll(() => doomed.told.filter(({ word }) => word === "settles").length).toBe(LANES.length)
    await doomed.kill()
    const killedAt = performance.now()
    // Bytes that the worker had written into its sockets are lost with it.
    proxy.reset()

    const plain = await site.receiver.arrived("/plain", 2)
    const ordered = await site.receiver.arrived("/ordered", 3)
    expect(plain.map(({ id }) => id)).toEqual([sent[0], sent[0]])
    expect(ordered.map(({ id }) => id)).toEqual([sent[1], sent[1], sent[2]])
    for (const { at } of [plain[1]!, ordered[1]!]) expect(at - killedAt).toBeLessThan(LEASE_MS + 5000)

    await expect.poll(() => site.sender.stats()).toMatchObject({ pending: 0, failed: 0, delivered: 3 })
    // The attempt of unknown outcome is on record beside the one that was written.
    for (const [i, endpointId] of endpoints.entries()) {
      const { rows } = await (await site.client()).query(
        "SELECT status FROM attempts WHERE webhook_id = $1 AND message_id = $2 ORDER BY seq",
        [endpointId, sent[i]],
      )
      expect(rows.map(({ status }) => status)).toEqual(["unknown", "succeeded"])
    }
  })
})

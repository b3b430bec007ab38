/** Fault 6: a worker is frozen past its lease, and wakes up. Its successor has delivered; what the zombie still writes is refused. */
import { describe, expect, test } from "vitest"
import { ON_SHARED_SERVERS, Site } from "../multi-process/site.ts"

const LEASE_MS = 2000
const LANES = ["plain-1", "plain-2", "ordered"]

describe.each(ON_SHARED_SERVERS)("on %s", (_, place) => {
  test("the successor delivers, and the zombie's outcomes are refused by the token", async () => {
    const site = await Site.open(await place(), { retry: { delays: [60], maxAttempts: 2 } })
    for (const lane of LANES) await site.endpoint(lane, { ordered: lane === "ordered" })
    const zombie = await site.worker({ leaseMs: LEASE_MS, tells: true })
    const answers = LANES.map((lane) => site.receiver.hold(`/${lane}`))
    const sent = new Map<string, string[]>()
    for (const lane of LANES) {
      sent.set(lane, [await site.send(lane), await site.send(lane), await site.send(lane)])
      await site.receiver.arrived(`/${lane}`, 1)
    }
    const successor = await site.worker({ leaseMs: LEASE_MS, tells: true })

    zombie.freeze()
    const begun = site.receiver.requests.length
    for (const lane of LANES) site.receiver.always(`/${lane}`, 200)
    await expect.poll(() => site.sender.stats(), { timeout: 10_000 }).toMatchObject({ delivered: 9 })
    const requests = site.receiver.requests.length

    // Its answers come in as it wakes up: failures, which would set back what is delivered if they were written.
    for (const answer of answers) answer(500)
    zombie.thaw()
    await expect
      .poll(() => zombie.told.filter(({ word }) => word === "stale").length, { timeout: 10_000 })
      .toBe(begun)
    expect(zombie.told.filter(({ word }) => word === "applied")).toEqual([])
    expect(await site.sender.stats()).toEqual({ pending: 0, failed: 0, delivered: 9, dead: 0, calledOff: 0 })
    expect(successor.told.filter(({ word }) => word === "applied")).toHaveLength(9)

    // It sent nothing more of what it had taken before, and takes part again.
    expect(site.receiver.requests).toHaveLength(requests)
    const line = site.receiver.to("/ordered").map(({ id }) => id)
    expect(line).toEqual([sent.get("ordered")![0], ...sent.get("ordered")!])
    await successor.kill()
    for (const lane of LANES) site.receiver.always(`/${lane}`, 200)
    const more = await site.send("plain-1")
    await expect
      .poll(() => site.receiver.to("/plain-1").some(({ id }) => id === more), { timeout: LEASE_MS + 5000 })
      .toBe(true)
  })
})

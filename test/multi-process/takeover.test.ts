/** How long it takes until others do the work of a worker that was killed, or that froze, with the real lease. */
import { expect, test } from "vitest"
import { ON_SHARED_SERVERS, Site } from "./site.ts"

const TAKEOVER_MS = 15_000
/** As many as one worker may have: what is sent next goes to the other. */
const LANES_EACH = 10

async function takeOver(site: Site): Promise<void> {
  const uids = Array.from({ length: 2 * LANES_EACH }, (_, i) => `lane-${i}`)
  for (const [i, uid] of uids.entries()) await site.endpoint(uid, { ordered: i % 5 === 0 })
  const held = uids.map((uid) => site.receiver.hold(`/${uid}`))
  const killed = await site.worker({ maxInFlight: LANES_EACH, tells: true })
  const frozen = await site.worker({ maxInFlight: LANES_EACH, tells: true })
  const sent = new Map<string, string>()
  for (const uid of uids) {
    sent.set(uid, await site.send(uid))
    await site.receiver.arrived(`/${uid}`, 1)
  }
  const inHand = ({ told }: typeof killed) => told.filter(({ word }) => word === "took").length
  expect([inHand(killed), inHand(frozen)]).toEqual([LANES_EACH, LANES_EACH])
  const heir = await site.worker({ tells: true })

  const faultAt = performance.now()
  frozen.freeze()
  await killed.kill()
  for (const uid of uids) site.receiver.always(`/${uid}`, 200)
  for (const uid of uids) {
    const [first, second] = await site.receiver.arrived(`/${uid}`, 2)
    expect([first!.id, second!.id]).toEqual([sent.get(uid), sent.get(uid)])
    expect(second!.at - faultAt).toBeLessThan(TAKEOVER_MS)
  }
  await expect.poll(() => site.sender.stats()).toMatchObject({ pending: 0, delivered: uids.length })
  for (const answer of held) answer(200)
  frozen.thaw()
  await expect
    .poll(() => frozen.told.filter(({ word }) => word === "stale").length, { timeout: 10_000 })
    .toBe(LANES_EACH)
  expect(heir.told.filter(({ word }) => word === "applied")).toHaveLength(uids.length)
  expect(site.receiver.requests).toHaveLength(2 * uids.length)
}

test("every lane of a killed worker and of a frozen one is worked on by another within 15 seconds", async () => {
  // At the same time: most of it is waiting.
  await Promise.all(ON_SHARED_SERVERS.map(async ([, place]) => takeOver(await Site.open(await place()))))
}, 60_000)

/**
 * Fault 7 with several workers: something holds up the event loop of one for longer than its lease. Each of its lanes is taken over
 * once, each request that was in flight is repeated once, and the worker takes part again. The table's 20 seconds are scaled with the lease.
 */
import { describe, expect, test } from "vitest"
import { ON_SHARED_SERVERS, Site } from "../multi-process/site.ts"

const LEASE_MS = 1500
const BLOCK_MS = 3500
const LANES = ["plain-1", "plain-2", "plain-3", "ordered"]
const MESSAGES = 10

const AUDIT = `
  CREATE TABLE owners (lane text, owner bigint, number bigint GENERATED ALWAYS AS IDENTITY);
  CREATE FUNCTION note_owner() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO owners (lane, owner) VALUES (NEW.id, NEW.owner); RETURN NULL; END $$;
  CREATE TRIGGER owners AFTER UPDATE OF owner ON lanes FOR EACH ROW
    WHEN (NEW.owner <> OLD.owner AND NEW.owner <> 0) EXECUTE FUNCTION note_owner()`

describe.each(ON_SHARED_SERVERS)("on %s", (_, place) => {
  test("no lease is stolen twice, and nothing is sent more than twice", async () => {
    const site = await Site.open(await place())
    for (const lane of LANES) await site.endpoint(lane, { ordered: lane === "ordered" })
    const client = await site.client()
    const blocked = await site.worker({ leaseMs: LEASE_MS, tells: true })
    const answers = LANES.map((lane) => site.receiver.hold(`/${lane}`))
    const sent = new Map<string, string[]>()
    for (const lane of LANES) {
      const messages = Array.from({ length: MESSAGES }, (_, n) => ({ eventType: lane, payload: n }))
      sent.set(
        lane,
        (await site.sender.sendBatch("acme", messages)).map(({ id }) => id),
      )
      await site.receiver.arrived(`/${lane}`, 1)
    }
    await client.query(AUDIT)
    const other = await site.worker({ leaseMs: LEASE_MS, tells: true })

    await blocked.block(BLOCK_MS)
    const underWay = new Set(site.receiver.requests.map(({ path, id }) => `${path} ${id}`))
    for (const answer of answers) answer(200)
    await expect
      .poll(() => site.sender.stats(), { timeout: 15_000 })
      .toMatchObject({ delivered: LANES.length * MESSAGES })
    // It has woken up when its answers, which waited for it all the while, are refused.
    await expect
      .poll(() => blocked.told.filter(({ word }) => word === "stale").length, { timeout: 10_000 })
      .toBe(underWay.size)

    for (const lane of LANES) {
      const ids = site.receiver.to(`/${lane}`).map(({ id }) => id)
      const expected = sent.get(lane)!.flatMap((id) => (underWay.has(`/${lane} ${id}`) ? [id, id] : [id]))
      if (lane === "ordered") expect(ids).toEqual(expected)
      else expect(ids.sort()).toEqual(expected.sort())
    }
    const { rows } = await client.query("SELECT count(*)::int AS times FROM owners GROUP BY lane")
    expect(rows).toEqual(LANES.map(() => ({ times: 1 })))
    await other.kill()
    const more = await site.send("ordered")
    await expect.poll(() => site.receiver.to("/ordered").at(-1)!.id, { timeout: LEASE_MS + 5000 }).toBe(more)
  })
})

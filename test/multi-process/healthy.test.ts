/** Four workers while nothing goes wrong with them: every delivery is sent once, or once more after each failure. */
import { describe, expect, test } from "vitest"
import { rounds } from "../support/length.ts"
import { ON_SHARED_SERVERS, Site } from "./site.ts"

const WORKERS = 4
const ENDPOINTS = 60
const ORDERED = 6
const DELIVERIES = rounds(3000, 30_000)
const BATCH = 100
/** Fewer than there are lanes, even for all of them together: lanes go from hand to hand. */
const MOST_LANES = 12
const FAILING = 0.05
/** Short: retries come due while other requests of the same lane are in flight. */
const RETRY = { delays: [0.02], maxAttempts: 20 }

describe.each(ON_SHARED_SERVERS)("on %s", (_, place) => {
  test(
    "four workers share the deliveries: none is sent twice, each worker works, ordered lanes keep their order",
    async () => {
      const site = await Site.open(await place())
      const uids = Array.from({ length: ENDPOINTS }, (_, i) => `endpoint-${i}`)
      const failed: string[] = []
      for (const [i, uid] of uids.entries()) {
        await site.endpoint(uid, { ordered: i < ORDERED })
        site.receiver.always(`/${uid}`, ({ path, id }, response) => {
          const fails = Math.random() < FAILING
          if (fails) failed.push(`${path} ${id}`)
          response.writeHead(fails ? 500 : 200).end()
        })
      }
      const workers = await Promise.all(
        Array.from({ length: WORKERS }, () =>
          site.worker({ tells: true, maxInFlight: MOST_LANES, retry: RETRY }),
        ),
      )

      const sent = new Map(uids.map((uid) => [`/${uid}`, [] as string[]]))
      for (let from = 0; from < DELIVERIES; from += BATCH) {
        const messages = Array.from({ length: BATCH }, (_, i) => ({
          eventType: uids[(from + i) % ENDPOINTS]!,
          payload: { n: from + i },
        }))
        const accepted = await site.sender.sendBatch("acme", messages)
        for (const [i, { eventType }] of messages.entries()) sent.get(`/${eventType}`)!.push(accepted[i]!.id)
      }
      for (const [path, ids] of sent) await site.receiver.arrived(path, ids.length)
      await expect
        .poll(() => site.sender.stats(), { timeout: 20_000 })
        .toEqual({ pending: 0, failed: 0, delivered: DELIVERIES, dead: 0, calledOff: 0 })

      expect(site.receiver.requests).toHaveLength(DELIVERIES + failed.length)
      const failures = Map.groupBy(failed, (name) => name)
      for (const [i, [path, ids]] of [...sent].entries()) {
        const received = site.receiver.to(path).map(({ id }) => id)
        const expected = ids.flatMap((id) =>
          new Array(1 + (failures.get(`${path} ${id}`)?.length ?? 0)).fill(id),
        )
        if (i < ORDERED) expect(received).toEqual(expected)
        else expect(received.sort()).toEqual(expected.sort())
      }
      const told = workers.map((worker) => worker.told)
      for (const words of told)
        expect(words.filter(({ word }) => word === "applied").length).toBeGreaterThan(DELIVERIES / 50)
      expect(told.flat().filter(({ word }) => word === "stale" || word === "superseded")).toEqual([])
    },
    rounds(60_000, 300_000),
  )
})

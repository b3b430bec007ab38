/** A row that an open transaction has locked delays its own lane or worker only. */
import { describe, expect, test } from "vitest"
import { LaneWorld, type OpenSchedule, proxied, type Worker } from "../../../test/support/lanes.ts"
import type { Runner } from "../../store/postgres/connection.ts"
import type { LaneClaim } from "../../store/store.ts"
import { ids, lane, manyLanes } from "../conformance.ts"

const SHORT_LEASE_MS = 800

const LOCK = "SELECT FROM lanes WHERE id = $1 FOR UPDATE"
const ROUND =
  "SELECT claimed FROM posthorn_claim_round($1, 0, 1, 9, '{}', '{}', '{}', '{}', 0, '{http}', '{}')"
const RECOUNT = "SELECT claimed FROM posthorn_recount($1)"
/** How many statements wait for a lock. */
export const WAITING = `
  SELECT count(*) AS waiting FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`

/** Runs `text` in a transaction that stays open until `meanwhile` ends, like that of a frozen process or an operator. */
export async function whileLocked<T>(
  world: LaneWorld,
  text: string,
  value: unknown,
  meanwhile: () => Promise<T>,
): Promise<T> {
  return await world.database.transaction(async (runner: Runner) => {
    await runner.run({ name: "", text }, value === null ? [] : [value])
    return await meanwhile()
  })
}

async function workerId(world: LaneWorld): Promise<unknown> {
  return (await world.sql("SELECT max(id) AS id FROM workers"))[0]!.id
}

/** One claim after the other: none is in flight when the lock is released. */
async function claimed(worker: Worker, count: number, now: number): Promise<LaneClaim[]> {
  const claims: LaneClaim[] = []
  for (;;) {
    const due = worker.due()
    claims.push(...(await worker.schedule.claim(count - claims.length, now).catch(() => [])))
    if (claims.length >= count) return claims
    await due
  }
}

export function lockedLanesConformance(name: string, open?: OpenSchedule): void {
  describe(`${name}: locked rows`, () => {
    test("a locked lane delays no other, and its wakes are folded when it is free", async () => {
      const world = await LaneWorld.create(open)
      const worker = await world.worker()
      await world.wake([lane("a"), lane("b")])
      await whileLocked(world, LOCK, "a", async () => {
        const [b] = await claimed(worker, 1, 1)
        expect(b!.endpointId).toBe("b")
        await world.wake([lane("a"), lane("b"), lane("c")])
        expect(ids(await claimed(worker, 2, 1))).toEqual(["b", "c"])
      })
      expect(ids(await claimed(worker, 1, 1))).toEqual(["a"])
      expect(await world.sql("SELECT * FROM lane_wakes")).toEqual([])
    })

    test("however many wakes a locked lane has, later wakes of other lanes are folded", async () => {
      const world = await LaneWorld.create(open)
      const worker = await world.worker()
      await world.wake(Array.from({ length: 4500 }, (_, i) => lane("a", 9 - (i % 5))))
      await world.wake([lane("b")])
      await whileLocked(world, LOCK, "a", async () => {
        expect(ids(await claimed(worker, 1, 1))).toEqual(["b"])
      })
      expect(ids(await claimed(worker, 1, 5))).toEqual(["a"])
    })

    test("the wakes of a deleted lane are dropped", async () => {
      const world = await LaneWorld.create(open)
      const { schedule } = await world.worker()
      await world.wake([lane("a"), lane("gone")])
      await world.sql("DELETE FROM lanes WHERE id = 'gone'")
      expect(ids(await schedule.claim(9, 1))).toEqual(["a"])
      expect(await world.sql("SELECT * FROM lane_wakes")).toEqual([])
    })

    test("while a lane stays locked a worker retries a few times a second", async () => {
      const world = await LaneWorld.create(open)
      const worker = await world.worker()
      const { schedule, database } = worker
      await world.wake([lane("a"), lane("held")])
      const claims = await schedule.claim(9, 1)
      const back = claims.find(({ endpointId }) => endpointId === "held")!
      await world.wake([lane("a")])
      await whileLocked(world, "SELECT FROM lanes FOR UPDATE", null, async () => {
        void schedule.release(back, 0, 1)
        // The first retries come soon, since most locks are short.
        const claimOften = async (times: number) => {
          for (let i = 0; i < times; i++) {
            const due = worker.due()
            await schedule.claim(9, 1)
            await due
          }
        }
        await claimOften(6)
        const begun = performance.now()
        const before = database.statements
        await claimOften(3)
        expect((database.statements - before) / ((performance.now() - begun) / 1000)).toBeLessThan(10)
      })
    })

    test("a locked lane is released later, and the others at once", async () => {
      const world = await LaneWorld.create(open)
      const [mine, other] = [await world.worker(), await world.worker()]
      await world.wake([lane("a"), lane("b")])
      const claims = await claimed(mine, 2, 1)
      // Woken while it is claimed: due again, whatever its release says.
      await world.wake([lane("a")])
      await other.schedule.claim(0, 1)
      let given: Promise<void>[] = []
      await whileLocked(world, LOCK, "a", async () => {
        given = ["a", "b"].map((id) => {
          const claim = claims.find(({ endpointId }) => endpointId === id)!
          return mine.schedule.release(claim, id === "a" ? null : 0, 1)
        })
        await given[1]
        expect(ids(await claimed(other, 1, 2))).toEqual(["b"])
      })
      await given[0]
      expect(ids(await claimed(other, 1, 2))).toEqual(["a"])
    })

    test("a dead worker's locked lane is taken over when it is free, the others at once", async () => {
      const world = await LaneWorld.create(open)
      const { proxy, url } = await proxied(world.url)
      const cutOff = await world.worker({ url, leaseMs: SHORT_LEASE_MS })
      const other = await world.worker({ leaseMs: SHORT_LEASE_MS })
      await world.wake(manyLanes(20))
      const locked = ids(await claimed(cutOff, 20, 1))[7]!
      proxy.blackHole()
      await whileLocked(world, LOCK, locked, async () => {
        expect(ids(await claimed(other, 19, 1))).not.toContain(locked)
        // The worker is told as soon as it is back, although it still owns its last lane.
        const lost = cutOff.lost()
        proxy.heal()
        await lost
        await world.wake([lane("new")])
        expect(ids(await claimed(cutOff, 1, 1))).toEqual(["new"])
      })
      expect(ids(await claimed(other, 1, 1))).toEqual([locked])
      const left = "SELECT count(*) FROM workers WHERE lease_until = '-infinity'"
      await expect.poll(() => world.sql(left)).toEqual([{ count: 0 }])
    })

    test("lanes of a dead worker's last claim round are taken over, however late that round ends", async () => {
      const world = await LaneWorld.create(open)
      const dying = await world.worker({ leaseMs: SHORT_LEASE_MS })
      const id = await workerId(world)
      const other = await world.worker({ leaseMs: SHORT_LEASE_MS })
      await world.wake([lane("a")])
      await claimed(dying, 1, 1)
      dying.schedule.abandon()
      await world.wake([lane("b")])
      await whileLocked(world, ROUND, id, async () => {
        expect(ids(await claimed(other, 1, 1))).toEqual(["a"])
      })
      expect(ids(await claimed(other, 1, 1))).toEqual(["b"])
    })

    test("a lease is renewed during a slow claim round", async () => {
      const world = await LaneWorld.create(open)
      const worker = await world.worker({ leaseMs: SHORT_LEASE_MS })
      let losses = 0
      worker.onLost = () => losses++
      const lease = "SELECT lease_until > $1::timestamptz + interval '1 second' AS renewed FROM workers"
      const [first] = await world.sql("SELECT lease_until::text AS until FROM workers")
      await whileLocked(world, ROUND, await workerId(world), async () => {
        await expect
          .poll(() => world.sql(lease, first!.until), { timeout: 4000 })
          .toEqual([{ renewed: true }])
        expect(worker.schedule.holds()).toBe(true)
      })
      expect(losses).toBe(0)
    })

    test("a recount waits for the claim round in flight, and later rounds are refused", async () => {
      const world = await LaneWorld.create(open)
      await world.worker()
      const id = await workerId(world)
      await world.wake([lane("a")])
      let recounted: Promise<unknown> | null = null
      await whileLocked(world, ROUND, id, async () => {
        recounted = world.sql(RECOUNT, id)
        await expect.poll(() => world.sql(WAITING)).toEqual([{ waiting: 1 }])
      })
      expect(await recounted).toEqual([{ claimed: ["a"] }])
      expect(await world.sql(ROUND, id)).toEqual([{ claimed: null }])
    })

    test("a claim whose worker's row is locked fails after a second, without closing the connection", async () => {
      const world = await LaneWorld.create(open)
      const worker = await world.worker()
      await world.wake([lane("a")])
      await whileLocked(world, "SELECT FROM workers FOR UPDATE", null, async () => {
        await expect(worker.schedule.claim(9, 1)).rejects.toMatchObject({ cause: { code: "55P03" } })
        await worker.database.run({ name: "", text: "SELECT" }, [])
        await expect.poll(() => world.sql(WAITING), { timeout: 3000 }).toEqual([{ waiting: 0 }])
      })
      expect(ids(await claimed(worker, 1, 1))).toEqual(["a"])
    })

    test("a worker that stops leaves its locked lane to the others when it is free, the rest at once", async () => {
      const world = await LaneWorld.create(open)
      const mine = await world.worker()
      const other = await world.worker({ leaseMs: SHORT_LEASE_MS })
      await world.wake(manyLanes(20))
      const locked = ids(await claimed(mine, 20, 1))[7]!
      await whileLocked(world, LOCK, locked, async () => {
        await mine.schedule.stop()
        expect(ids(await claimed(other, 19, 1))).not.toContain(locked)
      })
      expect(ids(await claimed(other, 1, 1))).toEqual([locked])
    })
  })
}

/** The conformance suite of schedules that many processes share: PostgreSQL alone, and with Redis in front of it. */
import { describe, expect, test } from "vitest"
import { LaneWorkers } from "../../../test/support/lane-workers.ts"
import { LaneWorld, type OpenSchedule, proxied, type Worker } from "../../../test/support/lanes.ts"
import type { Row } from "../../store/rows.ts"
import type { LaneClaim } from "../../store/store.ts"
import { ids, lane, manyLanes } from "../conformance.ts"
import { lockedLanesConformance, WAITING, whileLocked } from "./locks-conformance.ts"

/** Short, since tests wait until it runs out. */
const SHORT_LEASE_MS = 800
/** Longer than it takes to notice that a server is back. */
const OUTAGE_LEASE_MS = 2500

const isClaimRound = (bytes: Buffer) => bytes.includes("lanes.claim-round")

export function sharedScheduleConformance(
  name: string,
  open?: OpenSchedule,
  /** Waits for the work in the background that follows a start. */
  hasStarted: (world: LaneWorld) => Promise<void> = async () => {},
): void {
  lockedLanesConformance(name, open)

  describe(`${name}: a shared schedule`, () => {
    test("grants every lane to one worker only, however many claim at once", async () => {
      const world = await LaneWorld.create(open)
      const workers = await Promise.all(Array.from({ length: 4 }, () => world.worker()))
      await world.wake(manyLanes(700))
      const claims: LaneClaim[] = []
      while (claims.length < 700) {
        const taken = await Promise.all(workers.map(({ schedule }) => schedule.claim(50, 1)))
        claims.push(...taken.flat())
      }
      expect(new Set(ids(claims)).size).toBe(700)
      expect(new Set(claims.map(({ token }) => token)).size).toBe(700)
    })

    test("every claim has a higher token than all earlier claims of the lane", async () => {
      const world = await LaneWorld.create(open)
      const workers = [await world.worker(), await world.worker()]
      await world.wake([lane("a")])
      let last = 0
      for (let now = 1; now < 10; now++) {
        const { schedule } = workers[now % 2]!
        const [claim] = await schedule.claim(1, now)
        expect(claim!.token).toBeGreaterThan(last)
        last = claim!.token
        await schedule.release(claim!, 0, now)
      }
    })

    test("a lane that is woken while this worker has it is given again, with the same token", async () => {
      const world = await LaneWorld.create(open)
      const [mine, other] = [await world.worker(), await world.worker()]
      await world.wake([lane("a")])
      const [claim] = await mine.schedule.claim(1, 1)
      await world.wake([lane("a", 5)])
      expect(await other.schedule.claim(1, 5)).toEqual([])
      expect(await mine.schedule.claim(0, 4)).toEqual([])
      expect(mine.schedule.nextDueAt()).toBe(5)
      expect(await mine.schedule.claim(0, 5)).toEqual([claim])
      expect(await mine.schedule.claim(0, 5)).toEqual([])
    })

    test("a wake that a claim round folds while its lane is being released is not lost", async () => {
      const world = await LaneWorld.create(open)
      const { schedule } = await world.worker()
      await world.wake([lane("a")])
      const [claim] = await schedule.claim(1, 1)
      await world.wake([lane("a")])
      let [round, released]: Promise<unknown>[] = []
      await whileLocked(world, "SELECT FROM workers FOR UPDATE", null, async () => {
        round = schedule.claim(9, 2)
        await expect.poll(() => world.sql(WAITING)).toEqual([{ waiting: 1 }])
        released = schedule.release(claim!, null, 2)
      })
      expect(await round).toEqual([])
      await released
      expect(await schedule.claim(9, 3)).toMatchObject([{ endpointId: "a" }])
    })

    test("under load no wake is lost, no lane has two owners, and nothing deadlocks", async () => {
      const world = await LaneWorld.create(open)
      const workers = [await world.worker(), await world.worker(), await world.worker()]
      const lanes = manyLanes(40).map(({ endpointId }) => endpointId)
      await world.wake(manyLanes(40))
      const crew = await LaneWorkers.start(world, workers)
      await Promise.all(
        Array.from({ length: 4 }, async (_, sender) => {
          for (let round = 0; round < 150; round++) {
            const some = lanes.filter(() => Math.random() < 0.1)
            await crew.send(some, round % 3 === 0 ? null : round + sender)
          }
        }),
      )
      await expect.poll(() => crew.left(), { timeout: 10_000 }).toBe(0)
      expect(crew.shared).toEqual([])
      await Promise.all(workers.map(({ schedule, database }) => schedule.stop().then(() => database.close())))
      const [row] = await world.sql(
        "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()",
      )
      expect(row).toEqual({ deadlocks: 0 })
    })

    test("a release is written without any claim", async () => {
      const world = await LaneWorld.create(open)
      const [mine, other] = [await world.worker(), await world.worker()]
      await world.wake([lane("a")])
      const [claim] = await mine.schedule.claim(1, 1)
      await mine.schedule.release(claim!, 0, 1)
      expect(await other.schedule.claim(1, 2)).toHaveLength(1)
    })

    test("a worker that stops leaves its lanes to the others at once", async () => {
      const world = await LaneWorld.create(open)
      const [mine, other] = [await world.worker(), await world.worker()]
      await world.wake(manyLanes(20))
      const claims = await mine.schedule.claim(20, 1)
      await mine.schedule.stop()
      const taken = await other.claimed(20, 1)
      expect(ids(taken)).toEqual(ids(claims))
      expect(Math.min(...taken.map(({ token }) => token))).toBeGreaterThan(claims.at(-1)!.token)
    })

    test("another worker takes over from a dead one within its lease", async () => {
      const world = await LaneWorld.create(open)
      const dying = await world.worker({ leaseMs: SHORT_LEASE_MS })
      const other = await world.worker({ leaseMs: SHORT_LEASE_MS })
      await world.wake(manyLanes(20))
      expect(await dying.schedule.claim(20, 1)).toHaveLength(20)
      dying.schedule.abandon()
      expect(await other.claimed(20, 1)).toHaveLength(20)
    })

    test("a takeover is logged once: from which worker, and how many lanes", async () => {
      const world = await LaneWorld.create(open)
      const dying = await world.worker({ leaseMs: SHORT_LEASE_MS, name: "posthorn 4711" })
      const others = [
        await world.worker({ leaseMs: SHORT_LEASE_MS }),
        await world.worker({ leaseMs: SHORT_LEASE_MS }),
      ]
      await world.wake(manyLanes(20))
      expect(await dying.schedule.claim(20, 1)).toHaveLength(20)
      const [{ id }] = (await world.sql("SELECT id FROM workers WHERE name = 'posthorn 4711'")) as [Row]
      dying.schedule.abandon()
      await Promise.race(others.map((other) => other.claimed(20, 1)))
      expect(await world.log.told("stopped renewing its lease")).toMatchObject({
        ...{ level: 40, worker: "posthorn 4711", worker_id: id, lanes: 20 },
      })
      // By then each of the others has had its chance to log it.
      await expect.poll(() => world.sql("SELECT FROM workers WHERE name = 'posthorn 4711'")).toEqual([])
      expect(world.log.all).toHaveLength(1)
      expect(world.instruments.of("lanesTakenOver")).toEqual([[20]])
      expect(world.instruments.of("leaseRenewed").length).toBeGreaterThan(3)
    })

    test("a worker that stops is not logged as a takeover", async () => {
      const world = await LaneWorld.create(open)
      const [mine, other] = [await world.worker(), await world.worker()]
      await world.wake(manyLanes(20))
      await mine.schedule.claim(20, 1)
      await mine.schedule.stop()
      await other.claimed(20, 1)
      expect(world.log.all).toEqual([])
    })

    test("a worker that was cut off knows that it holds nothing, and is told of the takeover", async () => {
      const world = await LaneWorld.create(open)
      const { proxy, url } = await proxied(world.url)
      const cutOff = await world.worker({ url, leaseMs: SHORT_LEASE_MS })
      const other = await world.worker({ leaseMs: SHORT_LEASE_MS })
      await world.wake(manyLanes(20))
      const claims = await cutOff.schedule.claim(20, 1)
      expect(cutOff.schedule.holds()).toBe(true)
      proxy.blackHole()
      const lost = cutOff.lost()
      const taken = await other.claimed(20, 1)
      expect(cutOff.schedule.holds()).toBe(false)
      proxy.heal()
      await lost
      // It cannot release the lanes that were taken over, and it can claim others.
      await Promise.all(claims.map((claim) => cutOff.schedule.release(claim, 0, 1)))
      await world.wake([lane("new", 0)])
      expect(ids(await cutOff.claimed(1, 1))).toEqual(["new"])
      await expect.poll(() => cutOff.schedule.holds()).toBe(true)
      const owners = await world.sql(
        "SELECT count(DISTINCT owner) AS owners, min(owner) AS least FROM lanes WHERE id <> 'new'",
      )
      expect(owners).toMatchObject([{ owners: 1 }])
      expect(taken).toHaveLength(20)
    })

    test("lanes claimed by a round whose result was lost are claimed again", async () => {
      const world = await LaneWorld.create(open)
      const { proxy, url } = await proxied(world.url)
      const worker = await world.worker({ url })
      await world.wake([lane("held"), lane("back")])
      const [held, back] = await worker.schedule.claim(2, 1)
      await world.wake([lane("new"), lane(held!.endpointId)])
      const sprung = proxy.dropRepliesAfter(isClaimRound)
      const released = worker.schedule.release(back!, null, 2)
      await expect(worker.schedule.claim(9, 2)).rejects.toMatchObject({ code: "store_unavailable" })
      await sprung
      const claims = await worker.claimed(2, 3)
      await released
      // The lost round woke the lane that we hold, and claimed the other one.
      expect(claims).toContainEqual(held)
      expect(ids(claims)).toContain("new")
    })

    test("a claim round that arrives after a recount claims nothing", async () => {
      const world = await LaneWorld.create(open)
      const { proxy, url } = await proxied(world.url)
      const worker = await world.worker({ url })
      await world.wake([lane("a")])
      const sprung = proxy.dropRepliesAfter(isClaimRound)
      await expect(worker.schedule.claim(0, 1)).rejects.toThrow()
      await sprung
      expect(await worker.claimed(1, 1)).toHaveLength(1)
      await world.wake([lane("b")])
      const late =
        "posthorn_claim_round((SELECT id FROM workers), 0, 1, 1, '{}', '{}', '{}', '{}', 0, '{http}', '{}')"
      expect(await world.sql(`SELECT alive, claimed FROM ${late}`)).toEqual([{ alive: false, claimed: null }])
      expect(ids(await worker.schedule.claim(1, 1))).toEqual(["b"])
    })

    test("no claim is lost in an outage of the database", async () => {
      const world = await LaneWorld.create(open)
      const { proxy, url } = await proxied(world.url)
      const workers: Worker[] = []
      for (let i = 0; i < 3; i++) workers.push(await world.worker({ url, leaseMs: OUTAGE_LEASE_MS }))
      await world.wake(manyLanes(3))
      const claims: LaneClaim[] = []
      for (const worker of workers) claims.push(...(await worker.claimed(1, 1)))
      proxy.refuse()
      proxy.reset()
      const lapsed = "SELECT bool_and(lease_until < clock_timestamp()) AS all FROM workers"
      await expect.poll(() => world.sql(lapsed), { timeout: 10_000 }).toEqual([{ all: true }])
      expect(workers.map(({ schedule }) => schedule.holds())).toEqual([false, false, false])
      const released = workers.map(({ schedule }, i) => schedule.release(claims[i]!, 50, 1))
      let losses = 0
      for (const worker of workers) worker.onLost = () => losses++
      proxy.heal()
      await Promise.all(released)
      expect(losses).toBe(0)
      expect(await world.sql("SELECT DISTINCT owner FROM lanes")).toEqual([{ owner: 0 }])
    })

    test("a claim costs the same however many lanes wait, of its transport or of others", async () => {
      const world = await LaneWorld.create(open)
      const worker = await world.worker()
      await hasStarted(world)
      // Its plans are made now, while the table is empty.
      await worker.schedule.claim(10, 1)
      await world.sql(
        `INSERT INTO lanes (id, app_id, ready_at, transport)
         SELECT transport || i, 'app-' || i % 100, 0, transport FROM generate_series(1, 20000) i, unnest(ARRAY['http', 'relay']) AS transport`,
      )
      const claims: LaneClaim[] = []
      for (let now = 10_000; claims.length < 200; now++) {
        for (const claim of claims.slice(-5)) void worker.schedule.release(claim, now, now)
        claims.push(...(await worker.schedule.claim(10, now)))
      }
      await worker.schedule.stop()
      await worker.database.close()
      await world.sql("SELECT pg_stat_force_next_flush()")
      const [read] = await world.sql(
        `SELECT (SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'lanes')
              + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'lanes')::bigint AS rows`,
      )
      expect(read!.rows).toBeLessThan(20 * 1000)
    })

    test("an idle worker queries the database less than twice a second", async () => {
      const world = await LaneWorld.create(open)
      const worker = await world.worker()
      const { schedule, database } = worker
      const begun = performance.now()
      const before = database.statements
      await new Promise<void>((resolve) => {
        let times = 0
        worker.onDue = () => {
          void schedule.claim(10, 1)
          if (++times === 3) resolve()
        }
      })
      const seconds = (performance.now() - begun) / 1000
      expect((database.statements - before) / seconds).toBeLessThan(2)
    })

    test("a sweep leaves held, paused and claimed lanes as they are", async () => {
      const world = await LaneWorld.create(open)
      const { schedule } = await world.worker()
      world.waiting = ["claimed", "free", "held", "paused"].map((id) => lane(id, 5))
      await world.wake(world.waiting)
      const [claim] = await schedule.claim(1, 10)
      await world.sql("UPDATE lanes SET ready_at = 1000 WHERE owner = 0")
      await world.sql(
        `INSERT INTO endpoints (id, org_id, app_id, url, description, headers, metadata, ordered, disabled, paused, hold_until, secrets, version,
           created_at, updated_at)
         SELECT id, 'org', 'app', '', '', '', '', false, false, id = 'paused', CASE id WHEN 'held' THEN 70 END, '', 1, 0, 0 FROM lanes`,
      )
      await schedule.sweep(true)
      const rows = await world.sql(
        "SELECT id, ready_at FROM lanes WHERE id <> $1 ORDER BY id",
        claim!.endpointId,
      )
      const expected: { [id: string]: number } = { claimed: 10, free: 10, held: 70, paused: 1000 }
      expect(rows).toEqual(rows.map(({ id }) => ({ id, ready_at: expected[id as string] })))
      expect(rows).toHaveLength(3)
    })
  })
}

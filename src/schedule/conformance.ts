/** The conformance suite of schedules: the same tests over every implementation. */
import { describe, expect, test } from "vitest"
import type { LaneClaim, LaneWake } from "../store/store.ts"
import type { Schedule, ServedLanes } from "./schedule.ts"

export interface ScheduleUnderTest {
  readonly schedule: Schedule
  /** Wakes these lanes as a send does: in the store, then as a hint. */
  wake(lanes: readonly LaneWake[]): Promise<void>
  /** Sets the lanes that the store finds, by endpoint id. */
  waiting(lanes: readonly LaneWake[]): void
  /** Changes the URL of an endpoint of the application "app", which wakes its lane. */
  changeUrl(endpointId: string, url: string): Promise<void>
}

/** The lanes that a schedule under test serves, until a test says otherwise. */
export const HTTP: ServedLanes = { transports: ["http"], endpoints: [] }

export const lane = (endpointId: string, dueAt = 0, appId = "app", transport = "http") => ({
  ...{ endpointId, appId, dueAt, transport },
})
/** Of seven applications. */
export const manyLanes = (count: number) =>
  Array.from({ length: count }, (_, i) => lane(`ep-${1000 + i}`, 0, `app-${i % 7}`))
export const ids = (claims: readonly LaneClaim[]) => claims.map(({ endpointId }) => endpointId).sort()

async function claimAll(schedule: Schedule, now: number): Promise<LaneClaim[]> {
  const all: LaneClaim[] = []
  for (;;) {
    const claims = await schedule.claim(100_000, now)
    if (claims.length === 0) return all
    all.push(...claims)
  }
}

export function scheduleConformance(name: string, make: () => Promise<ScheduleUnderTest>): void {
  describe(`${name}: a schedule`, () => {
    test("offers a woken lane once it is due, to one worker only", async () => {
      const { schedule, wake } = await make()
      await wake([lane("a", 100)])
      expect(await schedule.claim(9, 99)).toEqual([])
      expect(schedule.nextDueAt()).toBe(100)
      expect(await schedule.claim(9, 100)).toMatchObject([{ endpointId: "a", appId: "app" }])
      expect(await schedule.claim(9, 100)).toEqual([])
      expect(schedule.nextDueAt()).toBeNull()
    })

    test("gives every claim a higher token", async () => {
      const { schedule, wake } = await make()
      await wake([lane("a", 0), lane("b", 0)])
      const [first] = await schedule.claim(1, 1)
      const [second] = await schedule.claim(1, 1)
      await schedule.release(first!, 1, 1)
      const [third] = await schedule.claim(9, 1)
      expect(second!.token).toBeGreaterThan(first!.token)
      expect(third!.token).toBeGreaterThan(second!.token)
      expect(third!.endpointId).toBe(first!.endpointId)
    })

    test("keeps the earliest of several wakes", async () => {
      const { schedule, wake } = await make()
      await wake([lane("a", 500), lane("a", 300), lane("a", 400)])
      expect(schedule.nextDueAt()).toBe(300)
      expect(await schedule.claim(9, 300)).toHaveLength(1)
      expect(await schedule.claim(9, 1000)).toHaveLength(0)
    })

    test("a wake during a claim is not lost", async () => {
      const { schedule, wake } = await make()
      await wake([lane("a", 0)])
      const [claim] = await schedule.claim(1, 0)
      await wake([lane("a", 50)])
      await schedule.release(claim!, null, 10)
      expect(schedule.nextDueAt()).toBe(50)
      expect(await schedule.claim(1, 50)).toHaveLength(1)
    })

    test("a lane released with nothing to do is not offered until it is woken", async () => {
      const { schedule, wake } = await make()
      await wake([lane("a", 0)])
      const [claim] = await schedule.claim(1, 0)
      await schedule.release(claim!, null, 10)
      expect(schedule.nextDueAt()).toBeNull()
      await wake([lane("a", 20)])
      expect(await schedule.claim(1, 20)).toHaveLength(1)
    })

    test("a lane released until later is offered then, and not before", async () => {
      const { schedule, wake } = await make()
      await wake([lane("a", 0)])
      const [claim] = await schedule.claim(1, 0)
      await schedule.release(claim!, 70, 10)
      expect(await schedule.claim(1, 69)).toEqual([])
      expect(schedule.nextDueAt()).toBe(70)
      expect(await schedule.claim(1, 70)).toHaveLength(1)
    })

    test("a released lane goes to the end of the queue", async () => {
      const { schedule, wake } = await make()
      await wake([lane("a", 1), lane("b", 2), lane("c", 3)])
      const order: string[] = []
      for (let now = 10; now < 16; now++) {
        const [claim] = await schedule.claim(1, now)
        order.push(claim!.endpointId)
        await schedule.release(claim!, 0, now)
      }
      expect(order).toEqual(["a", "b", "c", "a", "b", "c"])
    })

    test("applications take turns, however many lanes one of them has", async () => {
      const { schedule, wake } = await make()
      await wake(Array.from({ length: 1500 }, (_, i) => lane(`big-${i}`, 0, "big")))
      await wake([lane("small", 1, "small")])
      const claims = await schedule.claim(3, 1)
      expect(claims.map(({ appId }) => appId)).toContain("small")
    })

    test("says whether an unclaimed lane is due", async () => {
      const { schedule, wake } = await make()
      await wake([lane("a", 5), lane("b", 5)])
      expect(schedule.hasWaiting(4)).toBe(false)
      expect(schedule.hasWaiting(5)).toBe(true)
      await schedule.claim(1, 5)
      expect(schedule.hasWaiting(5)).toBe(true)
      await schedule.claim(1, 5)
      expect(schedule.hasWaiting(5)).toBe(false)
    })

    test("thousands of lanes are offered when they are due", async () => {
      const { schedule, wake } = await make()
      const due = Array.from({ length: 5000 }, (_, i) => (i * 7919) % 5000)
      await wake(due.map((at, i) => lane(`ep-${i}`, at, `app-${i % 10}`)))
      expect(new Set(ids(await claimAll(schedule, 2499))).size).toBe(2500)
      expect(schedule.nextDueAt()).toBe(2500)
      expect(schedule.hasWaiting(2499)).toBe(false)
    })

    test("a sweep finds lanes that no wake announced: all of them, or the next page", async () => {
      const { schedule, wake, waiting } = await make()
      const lost = Array.from({ length: 1200 }, (_, i) => lane(`ep-${1000 + i}`, 5))
      await wake(lost.map((one) => ({ ...one, dueAt: 0 })))
      for (const claim of await claimAll(schedule, 0)) void schedule.release(claim, 1000, 0)
      expect(await claimAll(schedule, 10)).toEqual([])
      waiting(lost)
      await schedule.sweep(false)
      const first = await claimAll(schedule, 10)
      expect(first).toHaveLength(500)
      for (const claim of first) void schedule.release(claim, 1000, 10)
      await schedule.sweep(false)
      expect(new Set([...ids(first), ...ids(await claimAll(schedule, 10))]).size).toBe(1000)
      await schedule.sweep(true)
      expect(await claimAll(schedule, 10)).toHaveLength(700)
    })

    test("offers lanes of the transports that it serves, and reports no others as waiting", async () => {
      const { schedule, wake } = await make()
      await wake([lane("a", 5, "app", "relay"), lane("b", 70), lane("c", 5)])
      expect(ids(await schedule.claim(9, 10))).toEqual(["c"])
      await wake([lane("d", 20, "app", "relay")])
      expect([schedule.nextDueAt(), schedule.hasWaiting(69)]).toEqual([70, false])
      schedule.serve({ transports: ["relay", "http"], endpoints: [] })
      expect(ids(await schedule.claim(9, 10))).toEqual(["a"])
      expect(schedule.nextDueAt()).toBe(20)
      expect(ids(await schedule.claim(9, 70))).toEqual(["b", "d"])
    })

    test("lanes that it does not serve stand in no other lane's way", async () => {
      const { schedule, wake } = await make()
      await wake(manyLanes(1500).map((one) => ({ ...one, transport: "relay" })))
      await wake([lane("a", 1), lane("b", 1, "app-1")])
      expect(ids(await schedule.claim(2, 1))).toEqual(["a", "b"])
      expect([schedule.nextDueAt(), schedule.hasWaiting(1)]).toEqual([null, false])
      schedule.serve({ transports: ["relay"], endpoints: [] })
      expect(await claimAll(schedule, 1)).toHaveLength(1500)
    })

    test("offers the endpoints that it serves by name, whatever their transport", async () => {
      const { schedule, wake } = await make()
      await wake([lane("a", 5, "app", "relay"), lane("b", 5, "app", "relay"), lane("c", 5)])
      schedule.serve({ transports: ["http"], endpoints: ["b", "none"] })
      const claims = await schedule.claim(9, 5)
      expect(ids(claims)).toEqual(["b", "c"])
      await schedule.release(claims.find(({ endpointId }) => endpointId === "b")!, 50, 5)
      expect(await schedule.claim(9, 49)).toEqual([])
      expect([schedule.nextDueAt(), schedule.hasWaiting(49)]).toEqual([50, false])
      schedule.serve(HTTP)
      expect(await schedule.claim(9, 50)).toEqual([])
      expect(schedule.nextDueAt()).toBeNull()
      schedule.serve({ transports: [], endpoints: ["a", "b"] })
      expect(ids(await schedule.claim(9, 50))).toEqual(["a", "b"])
    })

    test("a lane follows its endpoint's URL to another transport", async () => {
      const { schedule, wake, changeUrl } = await make()
      await wake([lane("later", 500), lane("due")])
      await changeUrl("later", "https://one.example")
      await changeUrl("later", "relay://queue")
      await changeUrl("due", "relay://queue")
      expect(await schedule.claim(9, 600)).toEqual([])
      expect(schedule.nextDueAt()).toBeNull()
      await changeUrl("later", "http://one.example")
      expect(ids(await schedule.claim(9, 600))).toEqual(["later"])
      schedule.serve({ transports: ["relay"], endpoints: [] })
      expect(ids(await schedule.claim(9, 600))).toEqual(["due"])
    })

    test("a due lane whose endpoint changes its transport before it is claimed is offered once", async () => {
      const { schedule, wake, changeUrl } = await make()
      await wake([lane("a"), lane("b")])
      expect(await schedule.claim(0, 1)).toEqual([])
      await changeUrl("a", "relay://queue")
      expect(ids(await schedule.claim(9, 2))).toEqual(["b"])
      schedule.serve({ transports: ["http", "relay"], endpoints: [] })
      expect(ids(await schedule.claim(9, 3))).toEqual(["a"])
      expect(await schedule.claim(9, 4)).toEqual([])
    })

    test("a lane whose endpoint changes its transport during a claim is offered as such once it is released", async () => {
      const { schedule, wake, changeUrl } = await make()
      await wake([lane("a")])
      const [claim] = await schedule.claim(1, 1)
      await changeUrl("a", "relay://queue")
      await schedule.claim(1, 2)
      await schedule.release(claim!, 0, 3)
      expect(await schedule.claim(1, 4)).toEqual([])
      schedule.serve({ transports: ["relay"], endpoints: [] })
      expect(ids(await schedule.claim(1, 4))).toEqual(["a"])
    })

    test("holds its claims until it stops", async () => {
      const { schedule, wake } = await make()
      await wake([lane("a", 0)])
      expect(await schedule.claim(1, 0)).toHaveLength(1)
      expect(schedule.holds()).toBe(true)
      await schedule.stop()
    })
  })
}

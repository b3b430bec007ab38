/** What every schedule must do, run over each implementation. */
import { describe, expect, test } from "vitest"
import type { Schedule } from "./schedule.ts"

const lane = (endpointId: string, dueAt: number, appId = "app") => ({ endpointId, appId, dueAt })

export function scheduleConformance(name: string, make: () => Promise<Schedule>): void {
  describe(`${name}: a schedule`, () => {
    test("offers a woken lane once its time has come, and to one worker only", async () => {
      const schedule = await make()
      schedule.wake([lane("a", 100)])
      expect(await schedule.claim(9, 99)).toEqual([])
      expect(schedule.nextDueAt()).toBe(100)
      expect(await schedule.claim(9, 100)).toMatchObject([{ endpointId: "a", appId: "app" }])
      expect(await schedule.claim(9, 100)).toEqual([])
      expect(schedule.nextDueAt()).toBeNull()
    })

    test("gives every claim a higher token", async () => {
      const schedule = await make()
      schedule.wake([lane("a", 0), lane("b", 0)])
      const [first, second] = await schedule.claim(9, 1)
      await schedule.release(first!, 1, 1)
      const [third] = await schedule.claim(9, 1)
      expect(second!.token).toBeGreaterThan(first!.token)
      expect(third!.token).toBeGreaterThan(second!.token)
      expect(third!.endpointId).toBe(first!.endpointId)
    })

    test("keeps the earliest of several wakes", async () => {
      const schedule = await make()
      schedule.wake([lane("a", 500), lane("a", 300), lane("a", 400)])
      expect(schedule.nextDueAt()).toBe(300)
      expect(await schedule.claim(9, 300)).toHaveLength(1)
      expect(await schedule.claim(9, 1000)).toHaveLength(0)
    })

    test("a wake while the lane is worked on is not lost", async () => {
      const schedule = await make()
      schedule.wake([lane("a", 0)])
      const [claim] = await schedule.claim(1, 0)
      schedule.wake([lane("a", 50)])
      await schedule.release(claim!, null, 10)
      expect(schedule.nextDueAt()).toBe(50)
      expect(await schedule.claim(1, 50)).toHaveLength(1)
    })

    test("a lane given back with nothing to do is forgotten until it is woken", async () => {
      const schedule = await make()
      schedule.wake([lane("a", 0)])
      const [claim] = await schedule.claim(1, 0)
      await schedule.release(claim!, null, 10)
      expect(schedule.nextDueAt()).toBeNull()
      schedule.wake([lane("a", 20)])
      expect(await schedule.claim(1, 20)).toHaveLength(1)
    })

    test("a lane given back goes to the end of the line", async () => {
      const schedule = await make()
      schedule.wake([lane("a", 1), lane("b", 2), lane("c", 3)])
      const order: string[] = []
      for (let now = 10; now < 16; now++) {
        const [claim] = await schedule.claim(1, now)
        order.push(claim!.endpointId)
        await schedule.release(claim!, 0, now)
      }
      expect(order).toEqual(["a", "b", "c", "a", "b", "c"])
    })

    test("applications take turns, however many lanes one of them has", async () => {
      const schedule = await make()
      schedule.wake(Array.from({ length: 50 }, (_, i) => lane(`big-${i}`, 0, "big")))
      schedule.wake([lane("small", 1, "small")])
      const claims = await schedule.claim(3, 1)
      expect(claims.map(({ appId }) => appId)).toContain("small")
    })

    test("says whether any lane waits for its turn", async () => {
      const schedule = await make()
      schedule.wake([lane("a", 5)])
      expect(schedule.hasWaiting(4)).toBe(false)
      expect(schedule.hasWaiting(5)).toBe(true)
      await schedule.claim(1, 5)
      expect(schedule.hasWaiting(5)).toBe(false)
    })

    test("a hundred thousand waiting lanes are offered in order of their time", async () => {
      const schedule = await make()
      const due = Array.from({ length: 100_000 }, (_, i) => (i * 7919) % 100_000)
      schedule.wake(due.map((at, i) => lane(`ep-${i}`, at, `app-${i % 10}`)))
      expect(await schedule.claim(100_000, 49_999)).toHaveLength(50_000)
      expect(schedule.nextDueAt()).toBe(50_000)
    })
  })
}

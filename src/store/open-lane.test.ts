import { describe, expect, test } from "vitest"
import { LentPlaces, OpenLane } from "./open-lane.ts"
import { OpenLanes } from "./sqlite/open-lanes.ts"

const input = (more: object = {}) => ({ token: 1, places: 4096, inHand: 0, starting: 1, ...more })

describe("a lane", () => {
  const open = (more: object = {}) => new OpenLane(new LentPlaces(), input(more))

  test("starts deliveries up to its limit, counting those in hand that wait", () => {
    const lane = open({ starting: 1 })
    expect([lane.take(0), lane.take(0), lane.take(0)]).toEqual([true, false, false])
    lane.free()
    lane.free()
    expect(lane.take(0)).toBe(false)
    for (let i = 0; i < 2; i++) lane.free()
    expect(lane.take(0)).toBe(true)
    expect(open({ starting: -2 }).take(0)).toBe(false)
  })

  test("loses a place for each delivery in hand, and frees it when the delivery leaves", () => {
    const lane = open({ places: 10, inHand: 3 })
    expect(lane.room).toBe(7)
    lane.hold()
    expect(lane.room).toBe(6)
    lane.free()
    expect(lane.room).toBe(7)
  })

  test("has no room, and no negative room, when more is in hand than allowed", () => {
    expect(open({ places: 2, inHand: 5 }).room).toBe(0)
  })

  test("gives a large payload several places until nothing is in hand", () => {
    const lane = open({ places: 10 })
    lane.take(4096 * 3)
    lane.take(4095)
    expect(lane.room).toBe(5)
    lane.free()
    expect(lane.room).toBe(6)
    lane.free()
    expect(lane.room).toBe(10)
  })

  test("returns all borrowed places when it is forgotten", () => {
    const pool = new LentPlaces()
    const lane = new OpenLane(pool, input({ inHand: 256 + 8192 }))
    expect(pool.isSpent).toBe(true)
    lane.forget()
    expect([pool.isSpent, lane.lent]).toEqual([false, 0])
  })
})

describe("the lanes of a process", () => {
  /** Number of deliveries that a lane takes before it is closed. */
  function fill(lanes: OpenLanes, id: string, bytes = 0): number {
    let taken = 0
    while (lanes.take(id, bytes) !== null) taken++
    return taken
  }

  test("a lane takes its limit, and is closed by the next delivery", () => {
    const lanes = new OpenLanes()
    lanes.open("a", input({ places: 10, inHand: 3 }))
    expect(fill(lanes, "a")).toBe(7)
    lanes.free("a", 1)
    expect(lanes.take("a", 0)).toBeNull()
  })

  test("lanes borrow beyond their own places, and always have their own places", () => {
    const lanes = new OpenLanes()
    for (const id of ["a", "b", "c", "d"]) lanes.open(id, input())
    expect(fill(lanes, "a")).toBe(4096)
    expect(fill(lanes, "b")).toBe(4096)
    expect(fill(lanes, "c")).toBe(256 + 8192 - 2 * (4096 - 256))
    expect(fill(lanes, "d")).toBe(256)
  })

  test("borrowed places are returned, also by a closed lane, and when the lane is opened again", () => {
    const lanes = new OpenLanes()
    const left = () => {
      lanes.open("probe", input({ places: 10_000 }))
      const taken = fill(lanes, "probe")
      lanes.open("probe", input())
      return taken - 256
    }
    lanes.open("a", input({ inHand: 1000 }))
    expect(left()).toBe(8192 - 744)
    lanes.close("a")
    expect(left()).toBe(8192 - 744)
    lanes.free("a", 2)
    expect(left()).toBe(8192 - 744)
    for (let i = 0; i < 1000; i++) lanes.free("a", 1)
    expect(left()).toBe(8192)
    lanes.open("a", input({ inHand: 1000 }))
    lanes.closeAll()
    expect(left()).toBe(8192 - 744)
    lanes.open("a", input({ token: 2 }))
    expect(left()).toBe(8192)
  })

  test("extra places of large payloads are freed when nothing is in hand, also in a closed lane", () => {
    const lanes = new OpenLanes()
    const large = 100 * 4096
    lanes.open("a", input({ places: 640 }))
    const taken = fill(lanes, "a", large)
    expect(taken).toBe(7)
    lanes.open("b", input())
    expect(fill(lanes, "b")).toBe(4096)
    for (let i = 0; i < taken; i++) lanes.free("a", 1)
    for (let i = 0; i < 4096; i++) lanes.free("b", 1)
    lanes.open("c", input({ places: 10_000 }))
    expect(fill(lanes, "c")).toBe(256 + 8192)
  })

  test("a session closes only the lane that it opened", () => {
    const lanes = new OpenLanes()
    lanes.open("a", input({ token: 2 }))
    lanes.closeIfToken("a", 1)
    expect(lanes.take("a", 0)).toEqual({ token: 2, starts: true })
    lanes.closeIfToken("a", 2)
    expect(lanes.take("a", 0)).toBeNull()
  })
})

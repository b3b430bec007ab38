import { expect, test } from "vitest"
import { OpenLanes } from "./open-lanes.ts"

const lane = (more: object = {}) => ({ token: 1, most: 4096, used: 0, free: 1, ...more })

/** How many a lane takes before it is closed. */
function fill(lanes: OpenLanes, id: string, bytes = 0): number {
  let taken = 0
  while (lanes.take(id, bytes) !== null) taken++
  return taken
}

test("a lane takes as many as it asked for, and is closed with the one that is too many", () => {
  const lanes = new OpenLanes()
  lanes.open("a", lane({ most: 10, used: 3 }))
  expect(fill(lanes, "a")).toBe(7)
  expect(lanes.get("a")).toBeUndefined()
})

test("what lanes take beyond their own places is lent to them, and however much others have, each has its own", () => {
  const lanes = new OpenLanes()
  for (const id of ["a", "b", "c", "d"]) lanes.open(id, lane())
  expect(fill(lanes, "a")).toBe(4096)
  expect(fill(lanes, "b")).toBe(4096)
  expect(fill(lanes, "c")).toBe(256 + 8192 - 2 * (4096 - 256))
  expect(fill(lanes, "d")).toBe(256)
  for (const id of ["a", "b", "c", "d"]) expect(lanes.get(id)).toBeUndefined()
})

test("what is lent comes back with what is settled, also of a lane that is closed, and with one that is opened anew", () => {
  const lanes = new OpenLanes()
  const free = () => {
    lanes.open("probe", lane({ most: 10_000 }))
    const taken = fill(lanes, "probe")
    lanes.open("probe", lane())
    return taken - 256
  }
  lanes.open("a", lane({ used: 1000 }))
  expect(free()).toBe(8192 - 744)
  lanes.close("a")
  expect(free()).toBe(8192 - 744)
  lanes.settled("a", 2)
  expect(free()).toBe(8192 - 744)
  for (let i = 0; i < 1000; i++) lanes.settled("a", 1)
  expect(free()).toBe(8192)
  lanes.open("a", lane({ used: 1000 }))
  lanes.closeAll()
  expect(free()).toBe(8192 - 744)
  lanes.open("a", lane({ token: 2 }))
  expect(free()).toBe(8192)
  lanes.open("a", lane({ used: 1000 }))
  lanes.forgetAll()
  expect(free()).toBe(8192)
})

test("what large ones take beyond one place is free when all are settled, also of a closed lane", () => {
  const lanes = new OpenLanes()
  const large = 100 * 4096
  lanes.open("a", lane({ most: 640 }))
  const taken = fill(lanes, "a", large)
  expect(taken).toBe(7)
  lanes.open("b", lane())
  expect(fill(lanes, "b")).toBe(4096)
  for (let i = 0; i < taken; i++) lanes.settled("a", 1)
  for (let i = 0; i < 4096; i++) lanes.settled("b", 1)
  lanes.open("c", lane({ most: 10_000 }))
  expect(fill(lanes, "c")).toBe(256 + 8192)
})

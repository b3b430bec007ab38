/** The order in which a lane starts what it has in hand. */
import { expect, test } from "vitest"
import type { ClaimedDelivery, Priority } from "../store/store.ts"
import { higherOf, LaneQueue } from "./lane-queue.ts"

const delivery = (seq: number, priority: Priority = "normal", attemptCount = 0, bytes = 0): ClaimedDelivery =>
  ({ seq, priority, attemptCount, payload: Buffer.alloc(bytes) }) as unknown as ClaimedDelivery

function filled(...deliveries: readonly ClaimedDelivery[]): LaneQueue {
  const queue = new LaneQueue()
  for (const one of deliveries) queue.add(one)
  return queue
}

/** The numbers in the order in which they are started. */
function started(queue: LaneQueue): number[] {
  const order: number[] = []
  for (let { head } = queue; head !== undefined; head = queue.head) {
    expect(queue.shift()).toBe(head)
    order.push(head.seq)
  }
  expect(queue.shift()).toBeUndefined()
  return order
}

test("deliveries start by priority, first attempts before retries, then by arrival", () => {
  const queue = filled(
    delivery(7, "low"),
    delivery(5, "normal", 3),
    delivery(3),
    delivery(1, "high"),
    delivery(4),
    delivery(2, "high"),
  )
  expect(queue.length).toBe(6)
  expect(started(queue)).toEqual([1, 2, 3, 4, 5, 7])
  expect(queue.length).toBe(0)
})

test("every fifth start goes to the first waiting retry, or to a first attempt while no retry waits", () => {
  const first = Array.from({ length: 12 }, (_, i) => delivery(i + 1))
  const queue = filled(...first, delivery(102, "low", 1), delivery(101, "normal", 1))
  expect(started(queue)).toEqual([1, 2, 3, 4, 101, 5, 6, 7, 8, 102, 9, 10, 11, 12])
})

test("large deliveries take more places, and free them", () => {
  const queue = filled(delivery(1), delivery(2, "high", 0, 4096), delivery(3, "low", 1, 100_000))
  expect(queue.places).toBe(1 + 2 + 25)
  queue.shift()
  expect(queue.places).toBe(1 + 25)
  expect(queue.clear().map(({ seq }) => seq)).toEqual([1, 3])
  expect([queue.places, queue.length, queue.head]).toEqual([0, 0, undefined])
})

test.each<[Priority, boolean]>([
  ["high", true],
  ["normal", false],
  ["low", false],
])("one of normal priority that was tried before goes behind %s: %s", (priority, behind) => {
  expect(filled(delivery(1, "normal", 1)).holdsLowerThan(priority)).toBe(behind)
})

test.each<[Priority, Priority | null, Priority]>([
  ["low", null, "low"],
  ["low", "normal", "normal"],
  ["high", "normal", "high"],
])("the higher of %s and %s is %s", (a, b, higher) => {
  expect(higherOf(a, b)).toBe(higher)
})

test("while retries may not start, first attempts go by priority, and retries can be taken out", () => {
  const queue = filled(delivery(3, "low"), delivery(2), delivery(10, "high", 1), delivery(11, "normal", 2))
  expect(queue.retries).toBe(2)
  expect(queue.firstAttempt?.seq).toBe(2)
  expect(queue.shiftFirstAttempt()?.seq).toBe(2)
  expect(queue.takeRetries().map(({ seq }) => seq)).toEqual([10, 11])
  expect([queue.retries, queue.length, queue.head?.seq]).toEqual([0, 1, 3])
  queue.shift()
  expect([queue.firstAttempt, queue.shiftFirstAttempt()]).toEqual([undefined, undefined])
})

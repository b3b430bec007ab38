/** How first attempts and retries share the slots of a process. */
import { expect, test } from "vitest"
import { TestClock } from "../../test/support/clock.ts"
import { type Slot, Slots } from "./slots.ts"

/** Takes slots for lanes with nothing else in flight, until one is refused. */
function takeAll(slots: Slots, isRetry: boolean, tryAgain: () => void = () => {}): Slot[] {
  const taken: Slot[] = []
  for (;;) {
    const slot = slots.take(0, 0, isRetry, tryAgain)
    if (slot === null) return taken
    taken.push(slot)
  }
}

test("retries leave half of the slots to first attempts, also while no first attempt waits", () => {
  const slots = new Slots(10, new TestClock())
  expect(takeAll(slots, true)).toHaveLength(5)
  expect(takeAll(slots, false)).toHaveLength(5)
})

test("first attempts may take all slots", () => {
  expect(takeAll(new Slots(10, new TestClock()), false)).toHaveLength(10)
})

test("while first attempts wait, retries take no more than a fifth", () => {
  const slots = new Slots(10, new TestClock())
  const retries = takeAll(slots, true)
  takeAll(slots, false)
  // A first attempt waits now: each slot that a retry frees goes to first attempts.
  let started = 0
  const start = () => {
    if (slots.take(0, 0, false, start) !== null) started++
  }
  start()
  expect(started).toBe(0)
  for (const slot of retries.slice(0, 3)) {
    start()
    expect(slots.take(0, 0, true, () => {})).toBeNull()
    slots.release(slot)
  }
  expect(started).toBe(3)
})

test("retries get their fifth although first attempts always wait", () => {
  const slots = new Slots(10, new TestClock())
  const firstAttempts = takeAll(slots, false)
  const started: string[] = []
  const wait = (isRetry: boolean) => {
    const tryAgain = () => {
      if (slots.take(0, 0, isRetry, tryAgain) !== null) started.push(isRetry ? "retry" : "first")
    }
    tryAgain()
  }
  for (let i = 0; i < 5; i++) wait(false)
  for (let i = 0; i < 5; i++) wait(true)
  for (const slot of firstAttempts.slice(0, 5)) slots.release(slot)
  expect(started).toEqual(["retry", "retry", "first", "first", "first"])
})

test("one slot is enough for both", () => {
  const slots = new Slots(1, new TestClock())
  const [retry] = takeAll(slots, true)
  expect(retry).toBeDefined()
  slots.release(retry!)
  expect(takeAll(slots, false)).toHaveLength(1)
})

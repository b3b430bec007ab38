import { expect, test } from "vitest"
import { TestClock } from "../../test/support/clock.ts"
import { type Slot, Slots } from "./slots.ts"

test("with 256 outcomes on their way into the store nothing more is sent, until one is written", () => {
  const slots = new Slots(2048, new TestClock())
  const retries: string[] = []
  const take = (name: string) => slots.take(0, 0, () => retries.push(name))
  const places = Array.from({ length: 256 }, () => take("before") as Slot)
  expect(take("while they are under way")).not.toBeNull()
  for (const place of places) place.answered()
  expect(take("behind them")).toBeNull()
  slots.offer()
  expect(retries).toEqual([])
  places[0]!.release()
  expect(retries).toEqual(["behind them"])
  expect(take("after")).not.toBeNull()
})

test("an attempt that ends without an outcome leaves room for others", () => {
  const slots = new Slots(2048, new TestClock())
  for (let i = 0; i < 300; i++) slots.take(0, 0, () => {})!.release()
  const places = Array.from({ length: 256 }, () => slots.take(0, 0, () => {})!)
  for (const place of places) place.answered()
  for (const place of places) place.release()
  expect(slots.take(0, 0, () => {})).not.toBeNull()
})

import { expect, test } from "vitest"
import { byExpense, costOf, type NumberedSum, type Prices, yieldsOf } from "./cost.ts"
import { whatIf } from "./cost-what-if.ts"

const PRICES: Prices = { perThousandAttempts: 2, perGigabyteOut: 3, perSlotHour: 4, currency: "EUR" }

function sum(attemptNumber: number, attempts: number, succeeded: number, more: Partial<NumberedSum> = {}) {
  return { attemptNumber, attempts, succeeded, dead: 0, bytesOut: 0, bytesIn: 0, durationMs: 0, ...more }
}

test("the price adds up attempts, gigabytes and hours of slots", () => {
  const sums = [sum(1, 500, 1, { bytesOut: 2e9 }), sum(2, 500, 0, { durationMs: 1.5 * 3_600_000 })]
  expect(costOf(sums, PRICES)).toMatchObject({ attempts: 1000, price: 2 + 6 + 6, slotSeconds: 5400 })
  expect(costOf(sums, null).price).toBeNull()
})

test("the share of the cost follows the price, and the attempts where everything is free", () => {
  const sums = [sum(2, 1, 1, { durationMs: 3_600_000 }), sum(1, 3, 1)]
  const shares = (prices: Prices | null) =>
    yieldsOf(sums, prices).map(({ number, costShare }) => [number, costShare])
  expect(shares({ ...PRICES, perThousandAttempts: 0 })).toEqual([
    [1, 0],
    [2, 1],
  ])
  const free = [
    [1, 0.75],
    [2, 0.25],
  ]
  expect(shares(null)).toEqual(free)
  expect(shares({ ...PRICES, perThousandAttempts: 0, perSlotHour: 0 })).toEqual(free)
})

test("deliveries that were given up before their first attempt are dead, and no attempt", () => {
  const sums = [sum(0, 0, 0, { dead: 5 }), sum(1, 2, 2)]
  expect(costOf(sums, null)).toMatchObject({ attempts: 2, dead: 5, wastedShare: 0 })
  expect(yieldsOf(sums, null)).toHaveLength(1)
})

test("rows that were typed by hand give no number beyond the largest exact one", () => {
  const huge = sum(1, Number.MAX_SAFE_INTEGER, 3)
  expect(costOf([huge, { ...huge, attemptNumber: 2 }], null).attempts).toBe(Number.MAX_SAFE_INTEGER)
})

test("the more expensive comes first: by price, without prices by attempts", () => {
  const [few, many] = [costOf([sum(1, 1, 1, { bytesOut: 5e9 })], null), costOf([sum(1, 9, 9)], null)]
  expect([few, many].toSorted(byExpense)).toEqual([many, few])
  const [dear, cheap] = [costOf([sum(1, 1, 1, { bytesOut: 5e9 })], PRICES), costOf([sum(1, 9, 9)], PRICES)]
  expect([cheap, dear].toSorted(byExpense)).toEqual([dear, cheap])
})

test.each([
  [3, "stop after 3 attempts: −41 % attempts, 2 of 10 000 lost"],
  [4, "stop after 4 attempts: −<1 % attempts, 1 of 10 000 lost"],
])("a what-if for %i attempts reads %s", (maxAttempts, text) => {
  const sums = [sum(1, 11_000, 9000), sum(2, 500, 500), sum(3, 498, 498), sum(4, 8337, 1), sum(5, 1, 1)]
  expect(whatIf({ maxAttempts, maxAge: null }, sums, null, null).text).toBe(text)
})

import { expect, test } from "vitest"
import { HOUR_MS } from "../store/rollups.ts"
import type { RollupFilter, RollupSum } from "../store/store.ts"
import { countedBy, type DeadSource, DeathReader, noticeOf, skipTo } from "./dead-letter-notice.ts"

const NOW = 500_000 * HOUR_MS + 120_000

/** A store in which `count` endpoints have deaths, one more each. */
function storeWith(count: number) {
  const asked: RollupFilter[] = []
  const sums = Array.from({ length: count }, (_, i) => ({ endpointId: `ep_${i}`, dead: i + 1 }) as RollupSum)
  const source: DeadSource = {
    async sumRollups(filter) {
      asked.push(filter)
      return [{ endpointId: "ep_healthy", dead: 0 } as RollupSum, ...sums]
    },
    getEndpoints: async () => [],
    listDeliveries: async () => [],
  }
  return { source, asked }
}

test("a notice names the ten endpoints with the most deaths, and how many more there are", async () => {
  const deaths = await new DeathReader(storeWith(13).source).read(NOW)
  const { subjects, more } = noticeOf(91, deaths, "info", "alert_1", NOW)
  expect([subjects.length, more]).toEqual([10, 3])
  expect(subjects[0]).toEqual({
    name: "ep_12",
    since: 500_000 * HOUR_MS,
    detail: "13 given up since 2027-01-15T08:00:00Z",
  })
})

test("deaths are read once for all channels whose last notice was in the same hour", async () => {
  const { source, asked } = storeWith(1)
  const reader = new DeathReader(source)
  for (const since of [NOW, NOW + 1, NOW - HOUR_MS, NOW]) await reader.read(since)
  expect(asked.map(({ since }) => since)).toEqual([500_000 * HOUR_MS, 499_999 * HOUR_MS])
})

test("the deaths of a notice begin when the channel was first seen, switched on, or last told", () => {
  const first = countedBy(undefined, 7, NOW)
  expect(first).toEqual({ counted: 7, since: NOW, at: 0 })
  expect(countedBy(first, 9, NOW + 1)).toBe(first)
  expect(skipTo(first, 7, NOW + 1)).toBe(first)
  expect(skipTo(first, 9, NOW + 1)).toEqual({ counted: 9, since: NOW + 1, at: 0 })
  expect(countedBy(first, 0, NOW + 1)).toEqual({ counted: 0, since: NOW + 1, at: 0 })
})

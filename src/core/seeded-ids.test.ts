import { expect, test } from "vitest"
import { isId } from "./ids.ts"
import { seededIds } from "./seeded-ids.ts"

const AT = Date.UTC(2026, 0, 1)
/** More than one draw fills. */
const many = (seed: string, atMs: number, nowMs = atMs) => {
  const ids = seededIds(seed, atMs)
  return Array.from({ length: 600 }, () => ids.make("app", nowMs))
}

test("the same seed gives the same ids, also when the repeat runs later", () => {
  expect(many("a", AT, AT + 60_000)).toEqual(many("a", AT))
})

test("no two of them are the same, and another seed or time gives others", () => {
  const all = [...many("a", AT), ...many("b", AT), ...many("a", AT + 4)]
  expect(new Set(all).size).toBe(1800)
  expect(all.every((id) => isId("app", id))).toBe(true)
})

test("a seed gives the ids that it gave before: a repeat may reach a newer program than the first try", () => {
  expect(seededIds("a", AT).make("app", AT)).toBe("app_37dGalnwHjlvBesAWlskAcLmazH")
})

import fc from "fast-check"
import { expect, test } from "vitest"
import { BoundedCache } from "./bounded-cache.ts"

test("what is used stays, however many others come and go", () => {
  const cache = new BoundedCache<number, string>(10)
  cache.set(-1, "used")
  for (let i = 0; i < 1000; i++) {
    cache.set(i, `${i}`)
    expect(cache.get(-1)).toBe("used")
  }
  expect(cache.get(0)).toBeUndefined()
  expect(cache.get(999)).toBe("999")
})

test("an entry that is set anew counts once", () => {
  const cache = new BoundedCache<string, number>(10)
  cache.set("other", 0)
  for (let i = 0; i < 100; i++) cache.set("one", i)
  expect([cache.get("other"), cache.get("one")]).toEqual([0, 99])
})

test("entries count by their sizes, and one that is too large is kept by itself", () => {
  const cache = new BoundedCache<string, number>(10)
  cache.set("a", 1, 2)
  cache.set("large", 2, 100)
  cache.set("b", 3, 5)
  cache.set("c", 4, 5)
  expect([cache.get("a"), cache.get("large")]).toEqual([undefined, undefined])
  expect([cache.get("b"), cache.get("c")]).toEqual([3, 4])
})

test("after any operations it has what was set last or nothing, and no more than it may", () => {
  const key = fc.integer({ min: 0, max: 30 })
  const operation = fc.record({ key, size: fc.integer({ min: 1, max: 4 }), verb: fc.nat({ max: 40 }) })
  fc.assert(
    fc.property(fc.array(operation, { minLength: 50, maxLength: 200 }), (operations) => {
      const cache = new BoundedCache<number, { readonly size: number }>(16)
      const model = new Map<number, { readonly size: number }>()
      for (const { key, size, verb } of operations) {
        const value = { size }
        if (verb === 40) cache.clear()
        else if (verb > 30) cache.delete(key)
        else if (verb > 15) cache.set(key, value, size)
        if (verb === 40) model.clear()
        else if (verb > 30) model.delete(key)
        else if (verb > 15) model.set(key, value)
        if (verb > 15 && verb <= 30) expect(cache.get(key)).toBe(value)
        else expect([undefined, model.get(key)]).toContain(cache.get(key))
      }
      const kept = Array.from({ length: 31 }, (_, i) => i).filter((i) => cache.get(i) !== undefined)
      expect(kept.reduce((sum, i) => sum + model.get(i)!.size, 0)).toBeLessThanOrEqual(16)
    }),
  )
})

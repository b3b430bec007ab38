import { expect, test } from "vitest"
import { Backoff } from "./backoff.ts"

test("delays double up to the longest, at any number of failures, and begin anew after a reset", () => {
  const backoff = new Backoff({ firstMs: 10, longestMs: 70, random: () => 1 })
  const four = () => Array.from({ length: 4 }, () => backoff.nextMs())
  expect(four()).toEqual([10, 20, 40, 70])
  expect(backoff.nextMs(5000)).toBe(70)
  backoff.reset()
  expect(four()).toEqual([10, 20, 40, 70])
})

test("a random part of at most half is taken off", () => {
  const after = (failure: number, random: number) =>
    new Backoff({ firstMs: 100, longestMs: 1000, random: () => random }).nextMs(failure)
  expect([after(1, 0), after(1, 0.5), after(3, 0)]).toEqual([50, 75, 200])
})

/** Fault 1: the process is killed in a burst of sends, again and again. `npm run torture` does more rounds of the same. */
import { expect, test } from "vitest"
import { torture } from "./torture.ts"

test("twenty kills at random moments: nothing accepted is missing, repeats carry the same id, lines stay in order", async () => {
  const seed = Math.floor(Math.random() * 2 ** 31)
  const { messages, delivered, dead, repeats, unknown } = await torture({ rounds: 20, seed })
  // The kills hit something: without work under way there would be nothing to lose.
  expect(messages, `seed ${seed}`).toBeGreaterThan(100)
  expect(delivered, `seed ${seed}`).toBeGreaterThan(messages)
  expect(dead.exhausted, `seed ${seed}`).toBeGreaterThan(0)
  expect(unknown + repeats, `seed ${seed}`).toBeGreaterThan(0)
}, 120_000)

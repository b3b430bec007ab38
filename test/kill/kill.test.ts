/** Fault 1: the process is killed in a burst of sends, again and again. `npm run torture` and `npm run soak` do more rounds of the same. */
import { expect, test } from "vitest"
import { freshGround, ON } from "../support/combination.ts"
import { rounds } from "../support/length.ts"
import { torture } from "./torture.ts"

/** The fourth round kills the process while it opens the store. */
const ROUNDS = rounds(4, ON === "sqlite" ? 40 : 20)

test(
  "kills at random moments: nothing accepted is missing, repeats carry the same id, lines stay in order",
  async () => {
    const ground = await freshGround({ migrated: false })
    const seed = Math.floor(Math.random() * 2 ** 31)
    const { messages, delivered, dead, repeats, unknown } = await torture({ rounds: ROUNDS, seed, ground })
    // The kills hit something: without requests in flight there would be nothing to lose.
    expect(messages, `seed ${seed}`).toBeGreaterThan(100)
    expect(delivered, `seed ${seed}`).toBeGreaterThan(messages)
    expect(dead.exhausted, `seed ${seed}`).toBeGreaterThan(0)
    expect(unknown + repeats, `seed ${seed}`).toBeGreaterThan(0)
  },
  30_000 * ROUNDS,
)

/** Faults 3 and 4, with the pages that they lose: power cuts and failed syncs. `npm run soak` does more of the same. */
import { expect, test } from "vitest"
import { IS_LONG } from "../support/length.ts"
import { crash, type End } from "./crash.ts"
import type { SyncFailure } from "./trace.ts"

const MOMENTS = 8
/** Each has two lives of a real program and some sixty images. */
const slow = { timeout: 180_000 }

test(
  "after a power cut at any moment all that was acknowledged is there, whatever became of unsynced writes",
  slow,
  async () => {
    const { images } = await crash({ seed: 1, failure: null, end: "throw", moments: 2 * MOMENTS })
    expect(images).toBeGreaterThan(60)
  },
)

interface Failure extends SyncFailure {
  readonly name: string
  readonly end: End
}

/** Both files, both fates of the pages and the three ends, each at least once. */
const FAILURES: readonly Failure[] = [
  { name: "database", file: "", at: 4, how: "dropped", end: "throw" },
  { name: "database", file: "", at: 6, how: "clean", end: "close" },
  { name: "log", file: "-wal", at: 50, how: "clean", end: "exit" },
]
const MORE_FAILURES: readonly Failure[] = [
  { name: "database", file: "", at: 5, how: "dropped", end: "exit" },
  { name: "log", file: "-wal", at: 40, how: "dropped", end: "close" },
]

test.for(IS_LONG ? [...FAILURES, ...MORE_FAILURES] : FAILURES)(
  "sync $at of the $name fails, pages $how, end by $end: the log stays and nothing acknowledged is lost, also at a power cut after the restart",
  slow,
  async ({ end, ...failure }) => {
    const { images } = await crash({ seed: failure.at, failure, end, moments: MOMENTS })
    expect(images).toBeGreaterThan(30)
  },
)

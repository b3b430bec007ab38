/** Why a figure has no value. */
import { setTimeout as delay } from "node:timers/promises"

/** It was measured, and something shows that the measurement cannot be trusted. */
export class VoidRun extends Error {}

/** Something that it needs is not on this machine. */
export class NotMeasured extends Error {}

const LONGEST_WAIT_MS = 30_000

/** What does not come in this time does not come. */
export async function inTime<T>(
  promise: Promise<T>,
  whatIsMissing: () => Promise<string> | string,
): Promise<T> {
  const over = new AbortController()
  const late = delay(LONGEST_WAIT_MS, null, { signal: over.signal }).then(async () => {
    throw new VoidRun(`after ${LONGEST_WAIT_MS / 1000} s: ${await whatIsMissing()}`)
  })
  late.catch(() => {})
  try {
    return await Promise.race([promise, late])
  } finally {
    over.abort()
  }
}

/** Why a figure has no value. */
import { setTimeout as delay } from "node:timers/promises"

/** The measurement cannot be trusted. */
export class VoidRun extends Error {}

/** This machine lacks a program or server that the figure needs. */
export class NotMeasured extends Error {}

const LONGEST_WAIT_MS = 30_000

/** Rejects with a `VoidRun` after 30 s. */
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

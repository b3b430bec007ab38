/** An open loop: sends at a fixed rate, and measures from the due time of each send, so that a slow send makes the next ones late. */
import { setTimeout as delay, setImmediate as turn } from "node:timers/promises"
import { sharedNow } from "./clock.ts"

/** A timer is up to a millisecond late. Between sends that are further apart, the last millisecond is a busy wait. */
const SPARSE_MS = 5

export interface OpenLoop {
  readonly perSecond: number
  readonly count: number
  send(index: number): Promise<unknown>
}

/** Resolves when all messages are accepted, with the due time of each on the shared clock. */
export async function openLoop({ perSecond, count, send }: OpenLoop): Promise<Float64Array> {
  const intervalMs = 1000 / perSecond
  const startsAt = sharedNow() + intervalMs
  const scheduled = Float64Array.from({ length: count }, (_, i) => startsAt + i * intervalMs)
  // Promises are not stored: their garbage collection would disturb the measurement.
  let sent = 0
  let inFlight = 0
  const errors: unknown[] = []
  const accepted = () => {
    inFlight--
  }
  const failed = (error: unknown) => {
    inFlight--
    errors.push(error)
  }
  while ((sent < count || inFlight > 0) && errors.length === 0) {
    const now = sharedNow()
    for (; sent < count && scheduled[sent]! <= now; inFlight++) send(sent++).then(accepted, failed)
    const waitMs = (scheduled[sent] ?? now) - sharedNow()
    if (intervalMs < SPARSE_MS) await delay(1)
    else if (waitMs > 2) await delay(Math.floor(waitMs) - 1)
    else await turn()
  }
  if (errors.length > 0) throw errors[0]
  return scheduled
}

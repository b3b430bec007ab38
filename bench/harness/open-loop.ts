/**
 * Sends at a fixed rate, whatever becomes of it, and counts from the moment at which each was to be sent: one that had to wait because
 * those before it were slow is late, and not left out.
 */
import { setTimeout as delay, setImmediate as turn } from "node:timers/promises"
import { sharedNow } from "./clock.ts"

/** A timer is up to a millisecond late; between sends that are further apart than this, that much is waited by turning. */
const SPARSE_MS = 5

export interface OpenLoop {
  readonly perSecond: number
  readonly count: number
  send(index: number): Promise<unknown>
}

/** Resolves when all are accepted, with the moment at which each was due, on the clock that processes share. */
export async function openLoop({ perSecond, count, send }: OpenLoop): Promise<Float64Array> {
  const intervalMs = 1000 / perSecond
  const startsAt = sharedNow() + intervalMs
  const scheduled = Float64Array.from({ length: count }, (_, i) => startsAt + i * intervalMs)
  // Not kept: what the sender holds on to would be collected in the time of what it measures.
  let sent = 0
  let underWay = 0
  const errors: unknown[] = []
  const accepted = () => {
    underWay--
  }
  const failed = (error: unknown) => {
    underWay--
    errors.push(error)
  }
  while ((sent < count || underWay > 0) && errors.length === 0) {
    const now = sharedNow()
    for (; sent < count && scheduled[sent]! <= now; underWay++) send(sent++).then(accepted, failed)
    const waitMs = (scheduled[sent] ?? now) - sharedNow()
    if (intervalMs < SPARSE_MS) await delay(1)
    else if (waitMs > 2) await delay(Math.floor(waitMs) - 1)
    else await turn()
  }
  if (errors.length > 0) throw errors[0]
  return scheduled
}

/** One clock for all the processes of a machine: Node's high-resolution time counts from a moment that they share. */

const OFFSET_MS = Number(process.hrtime.bigint()) / 1e6 - performance.now()

/** Milliseconds; `performance.now` is read, which costs a tenth of reading the shared clock itself. */
export function sharedNow(): number {
  return performance.now() + OFFSET_MS
}

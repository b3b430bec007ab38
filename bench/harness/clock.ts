/** One clock for all processes of a machine, from Node's high-resolution time. */

const offsetMs = () => Number(process.hrtime.bigint()) / 1e6 - performance.now()

/** The largest of several offsets: a pause of the process between the two readings makes an offset smaller. */
const OFFSET_MS = Math.max(...Array.from({ length: 20 }, offsetMs))

/** Milliseconds, from `performance.now`, which costs a tenth of reading the shared clock. */
export function sharedNow(): number {
  return performance.now() + OFFSET_MS
}

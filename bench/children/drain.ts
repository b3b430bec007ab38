/** A program that opens a store full of overdue deliveries and delivers for a while: when it began, how much it did, what it took. */
import { readFileSync } from "node:fs"
import { openPosthorn } from "../../src/index.ts"
import { sharedNow } from "../harness/clock.ts"
import { EGRESS } from "../harness/settings.ts"

export interface Drained {
  /** When `openPosthorn` was called, on the clock that processes share. */
  readonly openedAt: number
  readonly delivered: number
  readonly peakRssMb: number
}

const [, , store, drainMs] = process.argv
let delivered = 0
const openedAt = sharedNow()
const posthorn = await openPosthorn({ store: store!, logger: "error", egress: EGRESS })
posthorn.on("delivery.delivered", () => {
  delivered++
})
setTimeout(async () => {
  await posthorn.close()
  process.send!({ openedAt, delivered, peakRssMb: peakRssMb() } satisfies Drained)
}, Number(drainMs))

/** On Linux the usage that Node tells begins with what the parent had in memory when it started this process. */
function peakRssMb(): number {
  try {
    return Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync("/proc/self/status", "utf8"))![1]) / 1024
  } catch {
    return process.resourceUsage().maxRSS / 1024
  }
}

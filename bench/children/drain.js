/**
 * A program that opens a store full of overdue deliveries and delivers for a while: when it began, how much it did, what it took. As a
 * user's program, it is plain JavaScript with the built package: Node's own reading of TypeScript takes 50 MB.
 */
import { readFileSync } from "node:fs"

const [, , packageUrl, store, drainMs, egress] = process.argv
const { openPosthorn } = await import(packageUrl)
let delivered = 0
// On the clock that processes share.
const openedAt = Number(process.hrtime.bigint()) / 1e6
const posthorn = await openPosthorn({ store, logger: "error", egress: JSON.parse(egress) })
posthorn.on("delivery.delivered", () => {
  delivered++
})
setTimeout(async () => {
  await posthorn.close()
  process.send({ openedAt, delivered, peakRssMb: peakRssMb() })
}, Number(drainMs))

/** On Linux the usage that Node tells begins with what the parent had in memory when it started this process. */
function peakRssMb() {
  try {
    return Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync("/proc/self/status", "utf8"))[1]) / 1024
  } catch {
    return process.resourceUsage().maxRSS / 1024
  }
}

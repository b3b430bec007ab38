/**
 * Opens a store with overdue deliveries, delivers for a while, and prints when it began, the number of deliveries and its memory. Plain
 * JavaScript with the built package, as a user's program: running TypeScript directly takes 50 MB.
 */
import { readFileSync } from "node:fs"

const [, , packageUrl, store, drainMs, egress] = process.argv
const { openPosthorn } = await import(packageUrl)
let delivered = 0
// On the shared clock.
const openedAt = Number(process.hrtime.bigint()) / 1e6
const posthorn = await openPosthorn({ store, logger: "error", egress: JSON.parse(egress) })
posthorn.on("delivery.delivered", () => {
  delivered++
})
setTimeout(async () => {
  await posthorn.close()
  process.send({ openedAt, delivered, peakRssMb: peakRssMb() })
}, Number(drainMs))

/** On Linux, Node's resource usage starts with the memory of the parent at the fork. */
function peakRssMb() {
  try {
    return Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync("/proc/self/status", "utf8"))[1]) / 1024
  } catch {
    return process.resourceUsage().maxRSS / 1024
  }
}

/** A sender in a process of its own whose memory can be weighed: sends to what it is told, then says what it holds. */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { systemClock } from "../../src/core/clock.ts"
import { Guard } from "../../src/transport/egress/guard.ts"
import { parseEgress } from "../../src/transport/egress/settings.ts"
import { HttpTransport } from "../../src/transport/http.ts"

export interface Order {
  readonly urls: readonly string[]
  readonly count: number
  readonly atOnce: number
  readonly timeoutMs: number
  /** Measures memory this many milliseconds after the requests began, while they are in flight, instead of after them. */
  readonly weighAfterMs?: number
}

export interface Weighed {
  readonly bytes: number
  /** How each attempt ended, and how often. */
  readonly endings: { readonly [ending: string]: number }
  /** The longest body that came back. */
  readonly longestBody: number
  readonly openSockets: number
  /** Of the processor, for each attempt. */
  readonly cpuMs: number
}

setFlagsFromString("--expose-gc")
const collect = runInNewContext("gc") as () => void

const clock = systemClock()
const transport = new HttpTransport(
  clock,
  new Guard(parseEgress({ allow: ["127.0.0.0/8"], ports: "any" }), clock),
)
let sent = 0

process.on("message", async (order: Order) => process.send!(await carryOut(order)))
process.on("disconnect", () => process.exit(0))
console.log("ready")

async function carryOut(order: Order): Promise<Weighed> {
  const endings: { [ending: string]: number } = {}
  let longestBody = 0
  let next = 0
  const before = process.cpuUsage()
  const sender = async () => {
    while (next < order.count) {
      const url = order.urls[next++ % order.urls.length]!
      const { outcome, responseBody } = await transport.send({
        // Few endpoints with many attempts each: what is kept for an endpoint is not what is weighed.
        endpointId: `ep_${sent++ % 50}`,
        version: 1,
        url,
        headers: { "content-type": "text/plain" },
        body: Buffer.from("hello"),
        timeoutMs: order.timeoutMs,
        connectTimeoutMs: 10_000,
        tls: {},
      })
      longestBody = Math.max(longestBody, responseBody?.length ?? 0)
      const ending = outcome.kind === "response" ? String(outcome.status) : JSON.stringify(outcome)
      endings[ending] = (endings[ending] ?? 0) + 1
    }
  }
  const all = Promise.all(Array.from({ length: order.atOnce }, sender))
  let bytes = 0
  if (order.weighAfterMs !== undefined) {
    await new Promise((resolve) => setTimeout(resolve, order.weighAfterMs))
    bytes = weigh()
  }
  await all
  const { user, system } = process.cpuUsage(before)
  await new Promise((resolve) => setImmediate(resolve))
  if (order.weighAfterMs === undefined) bytes = weigh()
  const openSockets = process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap").length
  return { bytes, endings, longestBody, openSockets, cpuMs: (user + system) / 1000 / order.count }
}

function weigh(): number {
  collect()
  collect()
  const { heapUsed, external } = process.memoryUsage()
  // `external` counts array buffers too.
  return heapUsed + external
}

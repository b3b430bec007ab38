/** Starts the listener for `/metrics` and `/healthz` that the settings ask for. */
import { hostAndPort } from "../config/kinds.ts"
import type { Config } from "../config.ts"
import type { Logger } from "../observe/log.ts"
import type { Posthorn } from "../posthorn.ts"
import type { ScrapeServer } from "./scrape-server.ts"

/** Default metrics whose names break Prometheus' conventions: `promtool check metrics` would complain about them. */
const UNCONVENTIONAL = [
  "nodejs_active_handles_total",
  "nodejs_active_requests_total",
  "nodejs_active_resources_total",
  "nodejs_eventloop_utilization_histogram",
  "nodejs_eventloop_utilization_summary",
]

/**
 * Null where it is off, and where the default address cannot be used: two servers on a machine must both start. An address that was asked
 * for and cannot be used is an error.
 */
export async function listenForScrapes(
  posthorn: Posthorn,
  { values, sources }: Config,
  logger: Logger,
): Promise<ScrapeServer | null> {
  const { metrics } = values
  const { registry } = posthorn
  if (metrics === "off" || registry === null) return null
  const [{ ScrapeServer }, { collectDefaultMetrics }] = await Promise.all([
    import("./scrape-server.ts"),
    import("@prometheus-io/client"),
  ])
  try {
    // Of the whole process: a library leaves them to its host. First, since a failure must not leave a listener behind.
    collectDefaultMetrics({ register: registry })
    for (const name of UNCONVENTIONAL) registry.removeSingleMetric(name)
    return await ScrapeServer.start(posthorn, metrics.host, metrics.port, logger)
  } catch (error) {
    const where = hostAndPort(metrics.host, metrics.port)
    const other = `choose another address with ${sources.metrics ?? "--metrics or POSTHORN_METRICS"}, or off`
    const problem = `metrics cannot be offered at ${where}: ${listenProblem(error as NodeJS.ErrnoException)}; ${other}`
    if (sources.metrics !== null) throw new Error(problem, { cause: error })
    logger.warn(problem)
    return null
  }
}

function listenProblem({ code, message }: NodeJS.ErrnoException): string {
  switch (code) {
    case "EADDRINUSE":
      return "the port is taken by another program"
    case "EACCES":
      return "this user may not use the port"
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return "it is not an address of this machine"
    default:
      return message
  }
}

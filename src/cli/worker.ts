/** `posthorn worker`: a process that delivers and has no API. */

import type { SettingName } from "../config/table.ts"
import { libraryOptions } from "../config.ts"
import { withoutPassword } from "../core/location.ts"
import { openPosthorn, type Posthorn } from "../index.ts"
import { createLogger } from "../observe/log.ts"
import { listenForScrapes } from "./metrics-listener.ts"
import type { Flags } from "./parse-flags.ts"
import type { ScrapeServer } from "./scrape-server.ts"
import { configFor, FORCE, flagOptions, refused, settingsHelp } from "./settings.ts"
import { whenStopped } from "./signals.ts"
import { openTraces } from "./traces.ts"
import { UsageError } from "./usage-error.ts"

const USED: readonly SettingName[] = [
  "store",
  "schedule",
  "schema",
  "concurrency",
  "maxInFlight",
  "maxPerPoll",
  "ownOutage",
  "alerts",
  "retry",
  "pollIntervalMs",
  "maintenanceIntervalMs",
  "closeTimeoutMs",
  "sendTraceparent",
  "metrics",
  "logLevel",
  "egress.allow",
  "egress.ports",
  "egress.http",
  "egress.proxy",
  "egress.dns",
]

export const options = { ...flagOptions(USED), force: FORCE }

export const help = `posthorn worker --store URL [--schedule redis://HOST:PORT] [flags]

Delivers the waiting deliveries of the store, without an HTTP API. On PostgreSQL start as many workers as you
like, on any machine; if one dies, the others take over its deliveries. On SQLite only one process can deliver.
Metrics for Prometheus are at /metrics, and /healthz beside it.
SIGTERM and SIGINT stop it after the requests in flight, ten seconds at most; a second one stops it at once.

${settingsHelp(USED)}

  posthorn worker --store postgres://posthorn:secret@db.example.com/posthorn
  POSTHORN_STORE=postgres://… POSTHORN_SCHEDULE=redis://cache.example.com:6379 posthorn worker --log-level info

Each can be set in the environment too, as POSTHORN_STORE or POSTHORN_EGRESS_ALLOW, and the key of the
endpoints' secrets as POSTHORN_ENCRYPTION_KEY, the same for every process on the store.`

export async function run(flags: Flags): Promise<number> {
  const config = configFor(flags)
  const { store, schedule, logLevel } = config.values
  if (config.sources.store === null)
    throw new UsageError(
      "--store is missing: give it a URL such as postgres://user@host/database, or set POSTHORN_STORE",
    )
  const stopped = whenStopped()
  const logger = createLogger(logLevel)
  const traces = await openTraces(logger)
  let posthorn: Posthorn | null = null
  let metrics: ScrapeServer | null = null
  try {
    posthorn = await openPosthorn({
      ...libraryOptions(config),
      deliver: true,
      metrics: config.values.metrics !== "off",
      tracing: traces !== null,
      openMoved: flags.force === true,
      // The log already has the error.
      onFatal: () => process.exit(1),
    })
    metrics = await listenForScrapes(posthorn, config, logger)
  } catch (error) {
    await posthorn?.close()
    throw refused(error, config)
  }
  const told = { store: withoutPassword(store), schedule: withoutPassword(schedule ?? store) }
  const log = createLogger(logLevel === "silent" ? "silent" : "info")
  log.info(told, `worker ${process.pid} delivers from ${told.store}, scheduled by ${told.schedule}`)
  if (metrics !== null) log.info(`metrics are at ${metrics.url}/metrics`)
  const signal = await stopped
  log.info(`worker ${process.pid} got ${signal}: finishes the requests in flight`)
  metrics?.stopping()
  await posthorn.close()
  await metrics?.close()
  // Everything else is closed: only the exporter's retries could keep the process.
  if ((await traces?.close()) === false) process.exit(0)
  return 0
}

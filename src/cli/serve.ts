/** `posthorn serve`: the HTTP API, and the engine behind it. */

import type { Api } from "../api/context.ts"
import { tokenReader } from "../api/jwt.ts"
import { NAMES } from "../config/table.ts"
import { type Config, libraryOptions, settingsInForce } from "../config.ts"
import { systemClock } from "../core/clock.ts"
import { withoutPassword } from "../core/location.ts"
import { createLogger, type Logger } from "../observe/log.ts"
import { openPosthorn, type Posthorn } from "../posthorn.ts"
import { OPERATOR } from "../resources/sessions.ts"
import { adoptKey, makeFirstKey } from "./first-key.ts"
import { listenForScrapes } from "./metrics-listener.ts"
import type { Flags } from "./parse-flags.ts"
import type { ScrapeServer } from "./scrape-server.ts"
import { configFor, FORCE, flagOptions, refused, settingsHelp } from "./settings.ts"
import { whenStopped } from "./signals.ts"
import { openTraces } from "./traces.ts"

export const options = { ...flagOptions(NAMES), force: FORCE }

export const help = `posthorn serve [flags]

The dashboard at /, the HTTP API under /api/v1 and its reference at /docs. Clients for Svix work with it: give them its address
and a key. Metrics for Prometheus are at /metrics, and /healthz beside it, on an address of their own.
At the first start an admin key is made and printed, this once; POSTHORN_API_KEY gives one instead
(any text of 24 characters and more; one that is replaced there stays valid until it is revoked).
SIGTERM and SIGINT stop it after the requests in flight; a second one stops it at once.

${settingsHelp(NAMES)}

  posthorn serve
  PORT=80 POSTHORN_STORE=postgres://posthorn:secret@db.example.com/posthorn posthorn serve
  posthorn serve --no-deliver        and posthorn worker beside it, on the same PostgreSQL

Each can be set in the environment, as POSTHORN_PORT or POSTHORN_EGRESS_ALLOW, or in posthorn.json by name:
{"port": 8071, "egress": {"allow": ["10.0.0.0/8"]}}. Flags go before the environment, that before the file.`

export async function run(flags: Flags): Promise<number> {
  const config = configFor(flags)
  const { logLevel } = config.values
  const stopped = whenStopped()
  const logger = createLogger(logLevel)
  const traces = await openTraces(logger)
  const { app, posthorn, metrics, isFirstStart } = await start(
    config,
    logger,
    flags.force === true,
    traces !== null,
  )
  const address = addressOf(app, config)
  const told = createLogger(logLevel === "silent" ? "silent" : "info")
  const store = withoutPassword(config.values.store)
  told.info({ address, store }, `server ${process.pid} listens on ${address}, with ${store}`)
  if (metrics !== null) told.info(`metrics are at ${metrics.url}/metrics`)
  // A log that is kept gets no link, except at the first start, whose log has the first key.
  if (isFirstStart || process.stdout.isTTY || isNpmStart()) {
    const code = await posthorn.sessions.createCode(OPERATOR)
    console.log(`Posthorn listens on ${address}; its reference is at ${address}/docs
The dashboard, for one browser within an hour (posthorn dashboard prints another link):

  ${address}/#code=${code}
`)
  }
  const signal = await stopped
  told.info(`server ${process.pid} got ${signal}: finishes the requests in flight`)
  metrics?.stopping()
  await app.close()
  await metrics?.close()
  // Everything else is closed: only the exporter's retries could keep the process.
  if ((await traces?.close()) === false) process.exit(0)
  return 0
}

interface Started {
  readonly app: Api
  readonly posthorn: Posthorn
  readonly isFirstStart: boolean
  readonly metrics: ScrapeServer | null
}

async function start(config: Config, logger: Logger, openMoved: boolean, tracing: boolean): Promise<Started> {
  const { values } = config
  let posthorn: Posthorn | null = null
  let app: Api | null = null
  let metrics: ScrapeServer | null = null
  try {
    const { jwtSecret, jwtAlgorithm } = values
    const readToken =
      jwtSecret === null
        ? null
        : await tokenReader({ secret: jwtSecret, algorithm: jwtAlgorithm }, systemClock())
    // Load the server while the store's thread starts.
    const loading = import("../api/server.ts")
    // The log already has the error.
    posthorn = await openPosthorn({
      ...libraryOptions(config),
      metrics: values.metrics !== "off",
      tracing,
      openMoved,
      logger,
      onFatal: () => process.exit(1),
    })
    const { createServer } = await loading
    metrics = await listenForScrapes(posthorn, config, logger)
    if (values.apiKey !== null) await adoptKey(posthorn.keys, values.apiKey)
    app = createServer(posthorn, { ...values, logger, readToken, inForce: settingsInForce(config) })
    await app.listen({ port: values.port, host: values.host })
    // Last: a key that is created and not shown would lock out the operator.
    const key = values.apiKey === null ? await makeFirstKey(posthorn.keys) : null
    if (key !== null) console.log(welcome(key, addressOf(app, config), values["egress.allow"] !== null))
    return { app, posthorn, metrics, isFirstStart: key !== null }
  } catch (error) {
    await metrics?.close()
    await (app ?? posthorn)?.close()
    throw listenError(error, config) ?? refused(error, config)
  }
}

/** As typed on this machine. */
function addressOf(app: Api, { values }: Config): string {
  if (values.publicUrl !== null) return values.publicUrl
  const { port } = app.server.address() as { readonly port: number }
  const anywhere = values.host === "0.0.0.0" || values.host === "::"
  const host = values.host.includes(":") ? `[${values.host}]` : values.host
  return `http://${anywhere ? "localhost" : host}:${port}`
}

function isNpmStart(): boolean {
  return process.env.npm_lifecycle_event === "start"
}

function welcome(key: string, address: string, isOpened: boolean): string {
  const api = `${address}/api/v1`
  const post = (path: string, body: object) =>
    `  curl -X POST ${api}${path} -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -d '${JSON.stringify(body)}'`
  const started = isNpmStart() ? "npm start" : "posthorn serve"
  const local = `
Webhooks go to public addresses only. For a receiver on this machine, start the server with

  POSTHORN_EGRESS_ALLOW=127.0.0.0/8 ${started}
`
  const url = isOpened ? "http://127.0.0.1:9000/webhooks" : "https://example.com/webhooks"
  return `
The first admin key, shown this once:

  KEY=${key}

An application, an endpoint and a message:

${post("/app", { name: "Acme", uid: "acme" })}
${post("/app/acme/endpoint", { url, uid: "main" })}
${post("/app/acme/msg", { eventType: "invoice.paid", payload: { invoice: 17 } })}

A second later, what came of it:

  curl ${api}/app/acme/attempt -H "Authorization: Bearer $KEY"

Every call is described at ${address}/docs
${isOpened ? "" : local}`
}

function listenError(error: unknown, { values, sources }: Config): Error | null {
  const { code } = error as NodeJS.ErrnoException
  const { port, host } = values
  const other = `choose another with ${sources.port ?? "--port or POSTHORN_PORT"}`
  if (code === "EADDRINUSE") return new Error(`port ${port} is taken by another program; ${other}`)
  if (code === "EACCES") return new Error(`port ${port} may not be used by this user; ${other}`)
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND")
    return new Error(`${sources.host ?? "--host"} must be an address of this machine, and ${host} is none`)
  return null
}

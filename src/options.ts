/** Options of `openPosthorn`: checked once, with their defaults. */
import type { AlertChannelInput } from "./alerts/channels/channel.ts"
import type { AlertRuleInput } from "./alerts/rules.ts"
import { invalid, type PosthornError } from "./core/errors.ts"
import { refuseUnknown, requireBoolean, requireObject, wholeNumber } from "./core/input.ts"
import { OUTAGE_DEFAULTS, type OutageSettings } from "./core/own-outage.ts"
import { parsePolicy } from "./core/parse-policy.ts"
import { type PricesInput, parsePrices } from "./core/parse-prices.ts"
import type { PolicyInput } from "./core/policy.ts"
import { preset } from "./core/presets.ts"
import { type Logger, type LogLevel, parseLogger } from "./observe/log.ts"
import { type EgressInput, parseEgress } from "./transport/egress/settings.ts"

export interface PosthornOptions {
  /** `sqlite:<path>`, `sqlite::memory:` for a trial without a file, or `postgres://…`, which many processes can share. */
  store: string
  /** `redis://…`: the delay queue of a store on PostgreSQL. By default PostgreSQL keeps it. */
  schedule?: string
  /**
   * The PostgreSQL schema of the tables; also a parameter of the URL, `?schema=…`. By default the schema on the connection's search path
   * that has the tables, else `posthorn`.
   */
  schema?: string
  /** The policy of endpoints that have none: the name of a preset, or a policy. `standard`. */
  retry?: string | PolicyInput
  /** False: this process sends, reads and operates, and another one delivers. */
  deliver?: boolean
  /** Opens a SQLite file that `posthorn migrate` has moved to PostgreSQL. Deliveries that wait in both stores are sent twice. */
  openMoved?: boolean
  /** The interval of the poll, which finds due deliveries that no wake announced. 5000. */
  pollIntervalMs?: number
  /** The most deliveries between two polls, those of wakes included. Unlimited. */
  maxPerPoll?: number
  /** The interval of retention. An hour. */
  maintenanceIntervalMs?: number
  /** The most requests in flight, over all endpoints. 2048. */
  maxInFlight?: number
  /** The most requests in flight to an endpoint without a `concurrency` of its own. 32. */
  concurrency?: number
  /** When this process decides that its own network is down, see docs/protection.md; `false`: never. */
  ownOutage?: boolean | OwnOutageInput
  /** Prices for `cost.report`, see docs/cost.md. By default it has units and no money. */
  cost?: PricesInput
  /** 1 MiB. */
  maxPayloadBytes?: number
  /** How long `close` waits for requests in flight before it cuts them off. 10 000. */
  closeTimeoutMs?: number
  /** 32 bytes as hex or base64. Else POSTHORN_ENCRYPTION_KEY, else a generated key: in a file beside SQLite's, or a row in PostgreSQL. */
  encryptionKey?: string
  /** The addresses that webhooks may go to. By default public ones, and the ranges of POSTHORN_EGRESS_ALLOW. */
  egress?: EgressInput
  /** Whether spans are made, with the tracer provider that the program has registered with `@opentelemetry/api`. False. */
  tracing?: boolean
  /** Whether receivers get the header `traceparent`, see docs/observability.md. False. */
  sendTraceparent?: boolean
  /** Whether `posthorn.registry` has metrics, see docs/observability.md. False. */
  metrics?: boolean
  /** Alerts: applied to the store at each start. What it does not name stays as it is. */
  alerts?: AlertsInput
  /** A pino logger, or the level of a logger that writes to standard error. `warn`. */
  logger?: Logger | LogLevel
  /** Called when the file can no longer be trusted, after a failed sync. By default the error is thrown and ends the process. */
  onFatal?: (error: PosthornError) => void
}

export interface AlertsInput {
  /** Rules by id; all settings of each are replaced. */
  rules?: { readonly [id: string]: AlertRuleInput }
  /** A firing alert that nobody acknowledged is notified again after this time. 4. */
  repeatHours?: number
  /** The most notifications to a channel in an hour. 20. */
  notificationsPerHour?: number
  /** Channels by name; each is created or replaced. */
  channels?: { readonly [name: string]: AlertChannelInput }
}

export interface OwnOutageInput {
  /** No endpoint answers for this long, 15 000. */
  silenceMs?: number
  /** while at least this many endpoints are tried, 10, */
  endpoints?: number
  /** on at least this many hosts, 3. */
  hosts?: number
}

const KNOWN: readonly (keyof PosthornOptions)[] = [
  "store",
  "schedule",
  "schema",
  "retry",
  "deliver",
  "openMoved",
  "pollIntervalMs",
  "maxPerPoll",
  "maintenanceIntervalMs",
  "maxInFlight",
  "concurrency",
  "ownOutage",
  "cost",
  "maxPayloadBytes",
  "closeTimeoutMs",
  "encryptionKey",
  "egress",
  "tracing",
  "sendTraceparent",
  "metrics",
  "alerts",
  "logger",
  "onFatal",
]

export function parseOptions(options: PosthornOptions) {
  requireObject(options, "options")
  refuseUnknown(options, KNOWN, "options")
  const number = (name: keyof PosthornOptions, fallback: number, least: number, most: number) =>
    options[name] === undefined ? fallback : wholeNumber(options[name], name, least, most)
  const retry = options.retry ?? "standard"
  return {
    retry: typeof retry === "string" ? preset(retry) : parsePolicy(retry),
    deliver: options.deliver === undefined ? true : requireBoolean(options.deliver, "deliver"),
    openMoved: options.openMoved === undefined ? false : requireBoolean(options.openMoved, "openMoved"),
    pollIntervalMs: number("pollIntervalMs", 5000, 10, 86_400_000),
    maxPerPoll: options.maxPerPoll === undefined ? null : number("maxPerPoll", 1, 1, 1_000_000),
    maintenanceIntervalMs: number("maintenanceIntervalMs", 3_600_000, 10, 86_400_000),
    maxInFlight: number("maxInFlight", 2048, 1, 100_000),
    concurrency: number("concurrency", 32, 1, 1000),
    maxPayloadBytes: number("maxPayloadBytes", 1_048_576, 1, 67_108_864),
    ownOutage: parseOwnOutage(options.ownOutage ?? true),
    prices: options.cost === undefined ? null : parsePrices(options.cost),
    egress: parseEgress(options.egress, process.env),
    alerts: parseAlerts(options.alerts ?? {}),
    closeTimeoutMs: number("closeTimeoutMs", 10_000, 0, 3_600_000),
    tracing: options.tracing === undefined ? false : requireBoolean(options.tracing, "tracing"),
    sendTraceparent:
      options.sendTraceparent === undefined
        ? false
        : requireBoolean(options.sendTraceparent, "sendTraceparent"),
    metrics: options.metrics === undefined ? false : requireBoolean(options.metrics, "metrics"),
    logger: parseLogger(options.logger ?? "warn"),
    onFatal: parseOnFatal(options.onFatal ?? throwUncaught),
  }
}

/** The alerts check their own fields when they are applied. */
function parseAlerts(given: unknown): AlertsInput {
  requireObject(given, "alerts")
  const input = given as AlertsInput
  refuseUnknown(input, ["channels", "rules", "repeatHours", "notificationsPerHour"], "alerts")
  return input
}

function parseOwnOutage(given: unknown): OutageSettings | null {
  if (typeof given === "boolean") return given ? OUTAGE_DEFAULTS : null
  requireObject(given, "ownOutage")
  const input = given as OwnOutageInput
  refuseUnknown(input, Object.keys(OUTAGE_DEFAULTS), "ownOutage")
  const number = (name: keyof OutageSettings, least: number, most: number) =>
    input[name] === undefined
      ? OUTAGE_DEFAULTS[name]
      : wholeNumber(input[name], `ownOutage.${name}`, least, most)
  return {
    silenceMs: number("silenceMs", 1000, 3_600_000),
    endpoints: number("endpoints", 2, 1000),
    hosts: number("hosts", 1, 100),
  }
}

function parseOnFatal(onFatal: unknown): (error: PosthornError) => void {
  if (typeof onFatal !== "function") throw invalid("onFatal", "must be a function")
  return onFatal as (error: PosthornError) => void
}

/** An uncaught exception: a program must not go on with a store that it cannot trust. A tick later, after pending sends are refused. */
function throwUncaught(error: PosthornError): void {
  setImmediate(() => {
    throw error
  })
}

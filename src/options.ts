/** What can be said when Posthorn is opened: checked once, with what holds where nothing is said. */
import { invalid, type PosthornError } from "./core/errors.ts"
import { refuseUnknown, requireBoolean, requireObject, wholeNumber } from "./core/input.ts"
import { parsePolicy } from "./core/parse-policy.ts"
import type { PolicyInput } from "./core/policy.ts"
import { preset } from "./core/presets.ts"
import { createLogger, LOG_LEVELS, type Logger, type LogLevel } from "./observe/log.ts"
import { type EgressInput, parseEgress } from "./transport/egress/settings.ts"

export interface PosthornOptions {
  /** `sqlite:<path>`, `sqlite::memory:` for a trial that keeps nothing, or `postgres://…`, which many processes can share. */
  store: string
  /** `redis://…` as the delay queue of a store on PostgreSQL, which keeps it by itself unless told. */
  schedule?: string
  /**
   * The PostgreSQL schema of the tables; also a parameter of the URL, `?schema=…`. Unless told, the schema on the connection's search path
   * that has them already, else `posthorn`.
   */
  schema?: string
  /** The policy of endpoints that have none: a preset's name or a policy. `standard` unless told. */
  retry?: string | PolicyInput
  /** False opens the store beside the process that delivers, to look, send and operate; nothing is delivered from here. */
  deliver?: boolean
  /** Opens a SQLite file that `posthorn migrate` has moved to PostgreSQL, and that is refused otherwise. What waits in both is sent twice. */
  openMoved?: boolean
  /** How often the store is looked through for what no wake announced. 5000. */
  pollIntervalMs?: number
  /** At most so many deliveries between two polls, woken ones too. Not limited unless told. */
  maxPerPoll?: number
  /** How often retention runs. An hour. */
  maintenanceIntervalMs?: number
  /** The most requests under way at once, over all endpoints. 2048. */
  maxInFlight?: number
  /** The most requests under way at once to an endpoint that does not say. 32. */
  concurrency?: number
  /** 1 MiB. */
  maxPayloadBytes?: number
  /** How long `close` waits for requests under way before it cuts them off. 10 000. */
  closeTimeoutMs?: number
  /** 32 bytes as hex or base64. Else POSTHORN_ENCRYPTION_KEY, else a key made at first use: a file beside SQLite's, a row in PostgreSQL. */
  encryptionKey?: string
  /** Where webhooks may go. Public addresses only, unless ranges are opened here or by POSTHORN_EGRESS_ALLOW. */
  egress?: EgressInput
  /** A pino logger, or a level for one that writes to standard error. `warn`. */
  logger?: Logger | LogLevel
  /** Told when the file can no longer be trusted (a failed sync). Left out, the error is thrown and ends the process. */
  onFatal?: (error: PosthornError) => void
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
  "maxPayloadBytes",
  "closeTimeoutMs",
  "encryptionKey",
  "egress",
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
    egress: parseEgress(options.egress, process.env),
    closeTimeoutMs: number("closeTimeoutMs", 10_000, 0, 3_600_000),
    logger: parseLogger(options.logger ?? "warn"),
    onFatal: parseOnFatal(options.onFatal ?? throwUncaught),
  }
}

function parseOnFatal(onFatal: unknown): (error: PosthornError) => void {
  if (typeof onFatal !== "function") throw invalid("onFatal", "must be a function")
  return onFatal as (error: PosthornError) => void
}

function parseLogger(logger: unknown): Logger {
  if (LOG_LEVELS.includes(logger as LogLevel)) return createLogger(logger as LogLevel)
  if (typeof (logger as Partial<Logger>)?.isLevelEnabled === "function") return logger as Logger
  throw invalid("logger", `must be a pino logger or one of ${LOG_LEVELS.join(", ")}`)
}

/**
 * As an uncaught exception: a program that cannot trust its store must not go on as if it could. A turn later, so that the
 * sends that were waiting are refused first.
 */
function throwUncaught(error: PosthornError): void {
  setImmediate(() => {
    throw error
  })
}

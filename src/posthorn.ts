/** The library's front door: open, send, on, close. */
import { getRandomValues } from "node:crypto"
import { existsSync, realpathSync } from "node:fs"
import type { Random } from "./core/backoff.ts"
import { type Clock, systemClock } from "./core/clock.ts"
import { invalid, type PosthornError } from "./core/errors.ts"
import { createIds } from "./core/ids.ts"
import { refuseUnknown, requireBoolean, requireObject, wholeNumber } from "./core/input.ts"
import { type PolicyInput, parsePolicy } from "./core/policy.ts"
import { preset } from "./core/presets.ts"
import { createVault } from "./core/vault.ts"
import { Engine } from "./engine/engine.ts"
import { Reporter } from "./engine/reporter.ts"
import { encryptionKeyFor } from "./key-file.ts"
import { EventBus, type EventMap, type Listener } from "./observe/events.ts"
import { createLogger, LOG_LEVELS, type Logger, type LogLevel } from "./observe/log.ts"
import { Applications } from "./resources/applications.ts"
import { type Core, requireApplication } from "./resources/core.ts"
import { DeadLetters, Deliveries } from "./resources/deliveries.ts"
import { Endpoints } from "./resources/endpoints.ts"
import { type MessageInput, Messages, type SendResult } from "./resources/messages.ts"
import { Policies } from "./resources/policies.ts"
import { Tasks } from "./resources/tasks.ts"
import { MemorySchedule } from "./schedule/memory.ts"
import { openSqliteStore } from "./store/sqlite/store.ts"
import type { StatusCounts, Store } from "./store/store.ts"
import { Guard } from "./transport/egress/guard.ts"
import { type EgressInput, parseEgress } from "./transport/egress/settings.ts"
import { HttpTransport } from "./transport/http.ts"
import type { Transport } from "./transport/transport.ts"
import { VERSION } from "./version.ts"

export interface PosthornOptions {
  /** `sqlite:<path>`, or `sqlite::memory:` for a trial that keeps nothing. */
  store: string
  /** The policy of endpoints that have none: a preset's name or a policy. `standard` unless told. */
  retry?: string | PolicyInput
  /** False opens the file beside the process that delivers, to look, send and operate; nothing is delivered from here. */
  deliver?: boolean
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
  /** 32 bytes as hex or base64. Else POSTHORN_ENCRYPTION_KEY, else a file beside the database, created at first use. */
  encryptionKey?: string
  /** Where webhooks may go. Public addresses only, unless ranges are opened here or by POSTHORN_EGRESS_ALLOW. */
  egress?: EgressInput
  /** A pino logger, or a level for one that writes to standard error. `warn`. */
  logger?: Logger | LogLevel
  /** Told when the file can no longer be trusted (a failed sync). Left out, the error is thrown and ends the process. */
  onFatal?: (error: PosthornError) => void
}

/** What tests put in place of the real ones. */
export interface Replacements {
  readonly clock?: Clock
  readonly random?: Random
  readonly transport?: Transport
  /** Wraps the store, to make it fail. */
  readonly wrapStore?: (store: Store) => Store
}

export interface Health {
  readonly ready: boolean
  /** Why not, in a sentence. */
  readonly problem: string | null
}

const KNOWN: readonly (keyof PosthornOptions)[] = [
  "store",
  "retry",
  "deliver",
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

export async function openPosthorn(
  options: PosthornOptions,
  replacements: Replacements = {},
): Promise<Posthorn> {
  requireObject(options, "options")
  refuseUnknown(options, KNOWN, "options")
  const settings = parseOptions(options)
  const path = sqlitePath(options.store)
  const { logger } = settings
  const clock = replacements.clock ?? systemClock()
  const guard = new Guard(settings.egress, clock)
  const randomBytes = (into: Uint8Array) => void getRandomValues(into)
  const vault = createVault(encryptionKeyFor(path, options.encryptionKey), randomBytes)

  let posthorn: Posthorn | null = null
  const onLost = (error: PosthornError) => {
    logger.fatal({ err: error }, error.message)
    posthorn?.abandon()
    settings.onFatal(error)
  }
  const opened = await openSqliteStore({ path, own: settings.deliver, onLost })
  const store = replacements.wrapStore?.(opened) ?? opened
  try {
    await store.bindEncryptionKey(vault.fingerprint)
    const bus = new EventBus(logger)
    const ids = createIds(randomBytes)
    const shared = { store, clock, ids, vault, defaultPolicy: settings.retry }
    const engine = settings.deliver
      ? new Engine(
          {
            ...shared,
            schedule: new MemorySchedule(await store.openTokens()),
            transport: replacements.transport ?? new HttpTransport(clock, guard),
            random: replacements.random ?? Math.random,
            bus,
            logger,
          },
          { ...settings, laneConcurrency: settings.concurrency, userAgent: `Posthorn/${VERSION}` },
        )
      : null
    const core: Core = {
      ...shared,
      randomBytes,
      reporter: new Reporter(bus, logger),
      maxPayloadBytes: settings.maxPayloadBytes,
      guard,
      wake: (lanes) => engine?.wake(lanes),
      endpointChanged: (endpointId, appId) => engine?.endpointChanged(endpointId, appId),
      recall: (which) => engine?.recall(which),
      wakeTasks: () => engine?.tasks.wake(),
    }
    posthorn = new Posthorn(core, engine, bus, settings.closeTimeoutMs)
    await engine?.start()
    return posthorn
  } catch (error) {
    await store.close()
    throw error
  }
}

/** An open Posthorn. Every method rejects with a `PosthornError`. */
export class Posthorn {
  readonly applications: Applications
  readonly endpoints: Endpoints
  readonly policies: Policies
  readonly messages: Messages
  readonly deliveries: Deliveries
  readonly dead: DeadLetters
  readonly tasks: Tasks
  readonly #core: Core
  readonly #engine: Engine | null
  readonly #bus: EventBus
  readonly #closeTimeoutMs: number
  #closing: Promise<void> | null = null

  /** Use `openPosthorn`. */
  constructor(core: Core, engine: Engine | null, bus: EventBus, closeTimeoutMs: number) {
    this.#core = core
    this.#engine = engine
    this.#bus = bus
    this.#closeTimeoutMs = closeTimeoutMs
    this.applications = new Applications(core)
    this.endpoints = new Endpoints(core)
    this.policies = new Policies(core)
    this.messages = new Messages(core)
    this.deliveries = new Deliveries(core)
    this.dead = new DeadLetters(core, this.deliveries)
    this.tasks = new Tasks(core)
  }

  /** Resolves when the message and its deliveries are on disk. */
  send(app: string, message: MessageInput): Promise<SendResult> {
    return this.messages.send(app, message)
  }

  /** All or none, in this order. */
  sendBatch(app: string, messages: readonly MessageInput[]): Promise<SendResult[]> {
    return this.messages.sendBatch(app, messages)
  }

  /** Listens; the function that comes back stops it. `gateway:webhooks` gets everything. */
  on<N extends keyof EventMap>(name: N, listener: Listener<EventMap[N]>): () => void {
    return this.#bus.on(name, listener)
  }

  /** How many deliveries there are in each state, in all or of one application. */
  async stats(app?: string): Promise<StatusCounts> {
    const appId = app === undefined ? undefined : (await requireApplication(this.#core, app)).id
    return this.#core.store.countByStatus({ appId })
  }

  /** Whether a send would be accepted now: the store is asked to write. */
  async health(): Promise<Health> {
    try {
      await this.#core.store.check()
      return { ready: true, problem: null }
    } catch (error) {
      return { ready: false, problem: (error as Error).message }
    }
  }

  /** The parts that a test drives by hand. */
  get engine(): Engine | null {
    return this.#engine
  }

  /** Takes nothing more, finishes what is under way up to the deadline, writes it down, closes the file. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    await this.#engine?.stop(this.#closeTimeoutMs)
    await this.#engine?.transport.close()
    this.#core.guard.close()
    await this.#core.store.close()
  }

  /** The store is lost. */
  abandon(): void {
    this.#engine?.abandon()
  }
}

function parseOptions(options: PosthornOptions) {
  const number = (name: keyof PosthornOptions, fallback: number, least: number, most: number) =>
    options[name] === undefined ? fallback : wholeNumber(options[name], name, least, most)
  const retry = options.retry ?? "standard"
  return {
    retry: typeof retry === "string" ? preset(retry) : parsePolicy(retry),
    deliver: options.deliver === undefined ? true : requireBoolean(options.deliver, "deliver"),
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

function sqlitePath(store: unknown): string {
  if (typeof store !== "string" || !store.startsWith("sqlite:") || store.length === "sqlite:".length) {
    throw invalid("store", 'must be "sqlite:" and a path, such as "sqlite:posthorn.db"')
  }
  const path = store.slice("sqlite:".length)
  // By another name it is the same file: the lock and the key beside it must be the same too.
  return path !== ":memory:" && existsSync(path) ? realpathSync(path) : path
}

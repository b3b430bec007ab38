/** The library's front door: open, send, on, close. */
import { getRandomValues } from "node:crypto"
import { openBackend } from "./backend.ts"
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
import type { Bulletin, Note } from "./observe/bulletin.ts"
import { EventBus, type EventMap, type Listener } from "./observe/events.ts"
import { EventExchange } from "./observe/exchange.ts"
import { createLogger, LOG_LEVELS, type Logger, type LogLevel } from "./observe/log.ts"
import { Applications } from "./resources/applications.ts"
import { type Core, requireApplication } from "./resources/core.ts"
import { DeadLetters, Deliveries } from "./resources/deliveries.ts"
import { Endpoints } from "./resources/endpoints.ts"
import { type MessageInput, Messages, type SendOptions, type SendResult } from "./resources/messages.ts"
import { Policies } from "./resources/policies.ts"
import { Tasks } from "./resources/tasks.ts"
import type { StatusCounts, Store } from "./store/store.ts"
import { Guard } from "./transport/egress/guard.ts"
import { type EgressInput, parseEgress } from "./transport/egress/settings.ts"
import { HttpTransport } from "./transport/http.ts"
import type { Transport } from "./transport/transport.ts"
import { VERSION } from "./version.ts"

export interface PosthornOptions {
  /** `sqlite:<path>`, `sqlite::memory:` for a trial that keeps nothing, or `postgres://…`, which many processes can share. */
  store: string
  /** `redis://…` as the delay queue of a store on PostgreSQL, which keeps it by itself unless told. */
  schedule?: string
  /** The policy of endpoints that have none: a preset's name or a policy. `standard` unless told. */
  retry?: string | PolicyInput
  /** False opens the store beside the process that delivers, to look, send and operate; nothing is delivered from here. */
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
  /** 32 bytes as hex or base64. Else POSTHORN_ENCRYPTION_KEY, else a key made at first use: a file beside SQLite's, a row in PostgreSQL. */
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
  /** How long a worker that shares its store has after its last sign of life. */
  readonly leaseMs?: number | undefined
}

export interface Health {
  readonly ready: boolean
  /** Why not, in a sentence. */
  readonly problem: string | null
}

const KNOWN: readonly (keyof PosthornOptions)[] = [
  "store",
  "schedule",
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
  const { logger } = settings
  const clock = replacements.clock ?? systemClock()
  const random = replacements.random ?? Math.random
  const guard = new Guard(settings.egress, clock, random)
  const randomBytes = (into: Uint8Array) => void getRandomValues(into)

  let posthorn: Posthorn | null = null
  const onLost = (error: PosthornError) => {
    logger.fatal({ err: error }, error.message)
    posthorn?.abandon()
    settings.onFatal(error)
  }
  const { encryptionKey, schedule } = options
  const backend = await openBackend({
    ...settings,
    store: options.store,
    schedule,
    encryptionKey,
    random,
    leaseMs: replacements.leaseMs,
    onLost,
  })
  const { bulletin } = backend
  const store = replacements.wrapStore?.(backend.store) ?? backend.store
  let engine: Engine | null = null
  try {
    const vault = createVault(backend.encryptionKey, randomBytes)
    await store.bindEncryptionKey(vault.fingerprint)
    const bus = new EventBus(logger)
    const exchange = new EventExchange(bus, bulletin)
    const ids = createIds(randomBytes)
    const shared = { store, clock, ids, vault, defaultPolicy: settings.retry }
    engine = settings.deliver
      ? new Engine(
          {
            ...shared,
            schedule: await backend.openSchedule(store),
            transport: replacements.transport ?? new HttpTransport(clock, guard),
            random,
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
      wake(lanes) {
        engine?.wake(lanes)
        bulletin.post({ kind: "due" })
      },
      endpointChanged(endpointId, appId) {
        engine?.endpointChanged(endpointId, appId)
        bulletin.post({ kind: "changed", endpointId, appId })
      },
      recall(which) {
        engine?.recall(which)
        bulletin.post({ kind: "recall", ...which })
      },
      wakeTasks() {
        engine?.tasks.wake()
        bulletin.post({ kind: "tasks" })
      },
    }
    posthorn = new Posthorn(core, engine, bus, { ...settings, bulletin, exchange })
    await bulletin.start((note) => hear(note, engine, exchange))
    await engine?.start()
    return posthorn
  } catch (error) {
    engine?.abandon()
    await bulletin.close()
    await store.close()
    throw error
  }
}

/** What another process has to say. */
function hear(note: Note, engine: Engine | null, exchange: EventExchange): void {
  switch (note.kind) {
    case "due":
      return engine?.hint()
    case "changed":
      return engine?.endpointChanged(note.endpointId, note.appId)
    case "recall":
      return engine?.recall(note)
    case "tasks":
      return engine?.tasks.wake()
    case "listening":
    case "events":
      return exchange.hear(note)
  }
}

interface Ending {
  readonly closeTimeoutMs: number
  readonly bulletin: Bulletin
  readonly exchange: EventExchange
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
  readonly #ending: Ending
  #closing: Promise<void> | null = null

  /** Use `openPosthorn`. */
  constructor(core: Core, engine: Engine | null, bus: EventBus, ending: Ending) {
    this.#core = core
    this.#engine = engine
    this.#bus = bus
    this.#ending = ending
    this.applications = new Applications(core)
    this.endpoints = new Endpoints(core)
    this.policies = new Policies(core)
    this.messages = new Messages(core)
    this.deliveries = new Deliveries(core)
    this.dead = new DeadLetters(core, this.deliveries)
    this.tasks = new Tasks(core)
  }

  /** Resolves when the message and its deliveries are on disk; with `tx`, when they are part of that transaction. */
  send(app: string, message: MessageInput, options?: SendOptions): Promise<SendResult> {
    return this.messages.send(app, message, options)
  }

  /** All or none, in this order. */
  sendBatch(app: string, messages: readonly MessageInput[], options?: SendOptions): Promise<SendResult[]> {
    return this.messages.sendBatch(app, messages, options)
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
    await this.#engine?.stop(this.#ending.closeTimeoutMs)
    await this.#engine?.transport.close()
    this.#ending.exchange.close()
    await this.#ending.bulletin.close()
    this.#core.guard.close()
    await this.#core.store.close()
  }

  /** The store is lost. */
  abandon(): void {
    this.#engine?.abandon()
    this.#ending.exchange.close()
    void this.#ending.bulletin.close()
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

/** The library's front door: open, send, on, close. */
import { getRandomValues } from "node:crypto"
import { openBackend } from "./backend.ts"
import type { Random } from "./core/backoff.ts"
import { type Clock, systemClock } from "./core/clock.ts"
import type { PosthornError } from "./core/errors.ts"
import { createIds } from "./core/ids.ts"
import { createVault } from "./core/vault.ts"
import { Engine } from "./engine/engine.ts"
import { Reporter } from "./engine/reporter.ts"
import type { Bulletin, Note } from "./observe/bulletin.ts"
import { EventBus, type EventMap, type Listener } from "./observe/events.ts"
import { EventExchange } from "./observe/exchange.ts"
import { type PosthornOptions, parseOptions } from "./options.ts"
import { Applications } from "./resources/applications.ts"
import { type Core, requireApplication } from "./resources/core.ts"
import { DeadLetters, Deliveries } from "./resources/deliveries.ts"
import { Endpoints } from "./resources/endpoints.ts"
import { type MessageInput, Messages, type SendOptions, type SendResult } from "./resources/messages.ts"
import { Policies } from "./resources/policies.ts"
import { Tasks } from "./resources/tasks.ts"
import type { StatusCounts, Store } from "./store/store.ts"
import { Guard } from "./transport/egress/guard.ts"
import { HttpTransport } from "./transport/http.ts"
import type { Transport } from "./transport/transport.ts"
import { VERSION } from "./version.ts"

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

export async function openPosthorn(
  options: PosthornOptions,
  replacements: Replacements = {},
): Promise<Posthorn> {
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

/** The library's front door: open, send, on, close. */
import { getRandomValues } from "node:crypto"
import { type Backend, openBackend } from "./backend.ts"
import type { Random } from "./core/backoff.ts"
import { BoundedCache } from "./core/bounded-cache.ts"
import { type Clock, systemClock } from "./core/clock.ts"
import { PosthornError } from "./core/errors.ts"
import { createIds, type Ids } from "./core/ids.ts"
import { DEFAULT_ORG, requireOrg } from "./core/org.ts"
import { createVault } from "./core/vault.ts"
import { Engine } from "./engine/engine.ts"
import { EventBus, type Listener } from "./observe/event-bus.ts"
import { EventLog } from "./observe/event-log.ts"
import { EventRelay } from "./observe/event-relay.ts"
import { EventStream } from "./observe/event-stream.ts"
import { type Instruments, NO_INSTRUMENTS } from "./observe/instruments.ts"
import type { Logger } from "./observe/log.ts"
import type { Note, ProcessChannel } from "./observe/process-channel.ts"
import type { EventMap } from "./observe/public-events.ts"
import { type PosthornOptions, parseOptions } from "./options.ts"
import type { ResourceContext } from "./resources/resource-context.ts"
import type { Store } from "./store/store.ts"
import { Tenant } from "./tenant.ts"
import { TenantWebhooks } from "./tenant-webhooks/tenant-webhooks.ts"
import { Guard } from "./transport/egress/guard.ts"
import { HttpTransport } from "./transport/http.ts"
import { TransportRouter } from "./transport/router.ts"
import type { Transport } from "./transport/transport.ts"
import { nodeProblem, VERSION } from "./version.ts"

/** @internal Replaces parts in tests. */
export interface Replacements {
  readonly clock?: Clock
  readonly random?: Random
  readonly transport?: Transport
  readonly instruments?: Instruments
  /** Wraps the store, to make it fail. */
  readonly wrapStore?: (store: Store) => Store
  /** How long a worker that shares its store has after its last sign of life. */
  readonly leaseMs?: number | undefined
  /** From how many pages on SQLite's log is copied into the file. */
  readonly longLogPages?: number | undefined
}

export interface Health {
  /** Whether a send would be accepted now. */
  readonly ready: boolean
  /** What is wrong, in a sentence. While `ready` is true, sending and delivering go on without it: the schedule's Redis is away. */
  readonly problem: string | null
}

/** Of those that the library reads. The table of all settings is loaded only where there is one to look up. */
async function warnOfUnknownVariables(logger: Logger): Promise<void> {
  if (!Object.keys(process.env).some((name) => name.startsWith("POSTHORN_"))) return
  const { unknownVariables } = await import("./config/table.ts")
  for (const sentence of unknownVariables(process.env, "POSTHORN_EGRESS_")) logger.warn(sentence)
}

export async function openPosthorn(
  options: PosthornOptions,
  replacements: Replacements = {},
): Promise<Posthorn> {
  const problem = nodeProblem(process.versions.node)
  if (problem !== null) throw new PosthornError("store_incompatible", problem)
  const settings = parseOptions(options)
  const { logger } = settings
  await warnOfUnknownVariables(logger)
  const clock = replacements.clock ?? systemClock()
  const random = replacements.random ?? Math.random
  const instruments = replacements.instruments ?? NO_INSTRUMENTS
  const guard = new Guard(settings.egress, clock, random)
  const router = new TransportRouter([new HttpTransport(clock, guard)])
  const randomBytes = (into: Uint8Array) => void getRandomValues(into)

  let posthorn: Posthorn | null = null
  const onLost = (error: PosthornError) => {
    logger.fatal({ err: error }, error.message)
    posthorn?.abandon()
    settings.onFatal(error)
  }
  const { encryptionKey, schedule, schema } = options
  const backend = await openBackend({
    ...settings,
    store: options.store,
    schedule,
    schema,
    encryptionKey,
    random,
    instruments,
    leaseMs: replacements.leaseMs,
    longLogPages: replacements.longLogPages,
    onLost,
  })
  const { processChannel } = backend
  const store = replacements.wrapStore?.(backend.store) ?? backend.store
  let engine: Engine | null = null
  try {
    const vault = createVault(backend.encryptionKey, randomBytes)
    await store.bindEncryptionKey(vault.fingerprint)
    const bus = new EventBus(logger)
    const tenantWebhooks = new TenantWebhooks({
      store,
      logger,
      tenant: (orgId) => new Tenant({ ...context, orgId }),
    })
    const eventRelay = new EventRelay(bus, processChannel)
    const events = new EventStream(logger, [bus, new EventLog(logger), tenantWebhooks, eventRelay])
    const ids = createIds(randomBytes)
    const shared = { store, clock, ids, vault, events, instruments, defaultPolicy: settings.retry }
    engine = settings.deliver
      ? new Engine(
          {
            ...shared,
            schedule: await backend.openSchedule(store, events),
            transport: replacements.transport ?? router,
            random,
            logger,
          },
          { ...settings, laneConcurrency: settings.concurrency, userAgent: `Posthorn/${VERSION}` },
        )
      : null
    const context: ResourceContext = {
      ...shared,
      orgId: DEFAULT_ORG,
      randomBytes,
      maxPayloadBytes: settings.maxPayloadBytes,
      router,
      wake(lanes) {
        engine?.wake(lanes)
        processChannel.post({ kind: "due" })
      },
      endpointChanged(endpointId, appId) {
        engine?.endpointChanged(endpointId, appId)
        processChannel.post({ kind: "changed", endpointId, appId })
      },
      recall(which) {
        engine?.recall(which)
        processChannel.post({ kind: "recall", ...which })
      },
      sending: (endpointId) => engine?.sending(endpointId),
      wakeTasks() {
        engine?.tasks.wake()
        processChannel.post({ kind: "tasks" })
      },
    }
    posthorn = new Posthorn(context, engine, bus, tenantWebhooks, {
      ...settings,
      ...{ backend, processChannel, eventRelay, guard },
    })
    await processChannel.start((note) => hear(note, engine, eventRelay))
    eventRelay.start()
    await engine?.start()
    return posthorn
  } catch (error) {
    engine?.abandon()
    await processChannel.close()
    await store.close()
    throw error
  }
}

/** What another process has to say. */
function hear(note: Note, engine: Engine | null, eventRelay: EventRelay): void {
  switch (note.kind) {
    case "due":
      return engine?.hint()
    case "changed":
      return engine?.endpointChanged(note.endpointId, note.appId)
    case "recall":
      return engine?.recall(note)
    case "tasks":
      return engine?.tasks.wake()
    case "asking":
    case "listening":
    case "events":
      return eventRelay.hear(note)
  }
}

interface Surroundings {
  readonly closeTimeoutMs: number
  readonly backend: Backend
  readonly processChannel: ProcessChannel
  readonly eventRelay: EventRelay
  readonly guard: Guard
}

const MOST_TENANTS = 1000

/** An open Posthorn, and the default tenant's things. Every method rejects with a `PosthornError`. */
export class Posthorn extends Tenant {
  /** @internal Used by the server. */
  readonly tenantWebhooks: TenantWebhooks
  readonly #engine: Engine | null
  readonly #bus: EventBus
  readonly #around: Surroundings
  /** Of late: the server asks for one with each request. */
  readonly #tenants = new BoundedCache<string, Tenant>(MOST_TENANTS)
  #closing: Promise<void> | null = null

  /** Use `openPosthorn`. */
  constructor(
    context: ResourceContext,
    engine: Engine | null,
    bus: EventBus,
    tenantWebhooks: TenantWebhooks,
    around: Surroundings,
  ) {
    super(context)
    this.tenantWebhooks = tenantWebhooks
    this.#engine = engine
    this.#bus = bus
    this.#around = around
  }

  /** Another tenant, `org_…`: a world of its own, with nothing to be made before it is used. */
  tenant(orgId: string, { ids }: { readonly ids?: Ids } = {}): Tenant {
    if (ids !== undefined) return new Tenant({ ...this.context, orgId: requireOrg(orgId), ids })
    const known = this.#tenants.get(orgId)
    if (known !== undefined) return known
    const tenant = new Tenant({ ...this.context, orgId: requireOrg(orgId) })
    this.#tenants.set(orgId, tenant)
    return tenant
  }

  /** Listens; the function that comes back stops it. `gateway:webhooks` gets everything. */
  on<N extends keyof EventMap>(name: N, listener: Listener<EventMap[N]>): () => void {
    return this.#bus.on(name, listener)
  }

  /** Whether a send would be accepted now, for which the store is asked to write, and whether the schedule has all that it uses. */
  async health(): Promise<Health> {
    try {
      await this.context.store.check()
      const problem =
        this.#engine === null ? await this.#around.backend.checkSchedule() : this.#engine.scheduleProblem
      return { ready: true, problem }
    } catch (error) {
      return { ready: false, problem: (error as Error).message }
    }
  }

  /** @internal Tests drive its parts by hand. */
  get engine(): Engine | null {
    return this.#engine
  }

  /** Takes nothing more, finishes what is under way up to the deadline, writes it down, closes the file. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    await this.#engine?.stop(this.#around.closeTimeoutMs)
    await this.#engine?.transport.close()
    await this.tenantWebhooks.settled()
    this.#around.eventRelay.close()
    await this.#around.processChannel.close()
    this.#around.guard.close()
    await this.context.store.close()
  }

  /** @internal The store is lost. */
  abandon(): void {
    this.#engine?.abandon()
    this.#around.eventRelay.close()
    void this.#around.processChannel.close()
  }
}

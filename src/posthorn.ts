/** The library's front door: open, send, on, close. */
import { getRandomValues } from "node:crypto"
import type { Registry } from "@prometheus-io/client"
import type { Alerts } from "./alerts/alerts.ts"
import { AlertChannels } from "./alerts/channels/alert-channels.ts"
import { ChannelNotifier } from "./alerts/channels/channel-notifier.ts"
import { type OpenAlerts, openAlerts } from "./alerts/open-alerts.ts"
import { type Backend, openBackend } from "./backend.ts"
import type { Random } from "./core/backoff.ts"
import { BoundedCache } from "./core/bounded-cache.ts"
import { type Clock, systemClock } from "./core/clock.ts"
import { PosthornError } from "./core/errors.ts"
import { createIds, type Ids } from "./core/ids.ts"
import { DEFAULT_ORG, requireOrg } from "./core/org.ts"
import { createVault } from "./core/vault.ts"
import { Engine } from "./engine/engine.ts"
import { MONITOR_INTERVAL_MS, Monitor, type MonitorListener } from "./monitor/monitor.ts"
import type { Overview } from "./monitor/overview.ts"
import { OverviewRecorder } from "./monitor/overview-recorder.ts"
import { OverviewStore } from "./monitor/overview-store.ts"
import { EventBus, type Listener } from "./observe/event-bus.ts"
import { EventLog } from "./observe/event-log.ts"
import { EventRelay } from "./observe/event-relay.ts"
import { EventStream, type EventSubscriber } from "./observe/event-stream.ts"
import { type Instruments, NO_INSTRUMENTS } from "./observe/instruments.ts"
import { AcceptedCounter } from "./observe/live/accepted-counter.ts"
import { LiveEvents } from "./observe/live/live-events.ts"
import type { Logger } from "./observe/log.ts"
import type { Metrics } from "./observe/metrics/metrics.ts"
import { type Note, noProcessChannel } from "./observe/process-channel.ts"
import type { EventMap } from "./observe/public-events.ts"
import { withoutThrows } from "./observe/safe-instruments.ts"
import { NO_TRACING, type Tracing } from "./observe/tracing.ts"
import { type AlertsInput, type PosthornOptions, parseOptions } from "./options.ts"
import { AgentEngine } from "./relay/agent-engine.ts"
import { AgentHub } from "./relay/agent-hub.ts"
import { Presence } from "./relay/presence.ts"
import type { ResourceContext } from "./resources/resource-context.ts"
import { Receiver } from "./sources/receiver.ts"
import type { Endpoint, Store } from "./store/store.ts"
import { Tenant } from "./tenant.ts"
import { TenantWebhooks } from "./tenant-webhooks/tenant-webhooks.ts"
import { Guard } from "./transport/egress/guard.ts"
import { HttpTransport } from "./transport/http.ts"
import { NotifyTransport } from "./transport/notify/notify.ts"
import { RelayTransport } from "./transport/relay/relay.ts"
import { TransportRouter } from "./transport/router.ts"
import type { Transport } from "./transport/transport.ts"
import { nodeProblem, VERSION } from "./version.ts"

/** @internal Replaces parts in tests. */
export interface Replacements {
  readonly clock?: Clock
  readonly random?: Random
  readonly transport?: Transport
  readonly instruments?: Instruments
  readonly tracer?: Tracing
  /** Wraps the store, to make it fail. */
  readonly wrapStore?: (store: Store) => Store
  /** The lease of a worker that shares its store. */
  readonly leaseMs?: number | undefined
  /** Null: no monitor. */
  readonly monitorIntervalMs?: number | null
  /** The length of SQLite's log from which it is copied into the file. */
  readonly longLogPages?: number | undefined
}

export interface Health {
  /** Whether a send would be accepted now. */
  readonly ready: boolean
  /** A sentence for operators. While `ready` is true it is about the schedule's Redis, without which delivery goes on, or about this process's network. */
  readonly problem: string | null
}

/** The table of settings is loaded only when a variable has to be looked up. */
async function warnOfUnknownVariables(logger: Logger): Promise<void> {
  if (!Object.keys(process.env).some((name) => name.startsWith("POSTHORN_"))) return
  const { unknownVariables } = await import("./config/table.ts")
  for (const sentence of unknownVariables(process.env, "POSTHORN_EGRESS_")) logger.warn(sentence)
}

/** OpenTelemetry is loaded only for a Posthorn with tracing. */
async function createTracing(): Promise<Tracing> {
  const { OpenTelemetryTracing } = await import("./observe/opentelemetry/tracing.ts")
  return new OpenTelemetryTracing(VERSION)
}

/** The client is loaded only for a Posthorn with metrics. */
async function createMetrics(): Promise<Metrics> {
  const { Metrics } = await import("./observe/metrics/metrics.ts")
  return new Metrics(VERSION)
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
  const metrics = settings.metrics ? await createMetrics() : null
  const measured = replacements.instruments ?? metrics?.instruments
  const instruments = measured === undefined ? NO_INSTRUMENTS : withoutThrows(measured, logger)
  const tracing = replacements.tracer ?? (settings.tracing ? await createTracing() : NO_TRACING)
  const guard = new Guard(settings.egress, clock, random)
  const http = new HttpTransport(clock, guard)
  let notifier: ChannelNotifier
  const notify = new NotifyTransport(clock, http, (channel, request) => notifier.compose(channel, request))
  const relay = new RelayTransport()
  const router = new TransportRouter([http, notify, relay])
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
  const holder = Buffer.from(getRandomValues(new Uint8Array(12))).toString("hex")
  try {
    const vault = createVault(backend.encryptionKey, randomBytes)
    await store.bindEncryptionKey(vault.fingerprint)
    const bus = new EventBus(logger)
    const tenantWebhooks = new TenantWebhooks({
      store,
      logger,
      tenant: (orgId) => new Tenant({ ...context, orgId }),
    })
    const ids = createIds(randomBytes)
    notifier = new ChannelNotifier({
      ...{ store, vault, clock, ids, instruments, logger },
      transport: notify,
      context: () => context,
    })
    const eventRelay = new EventRelay(bus, processChannel, () => clock.now())
    const isShared = processChannel !== noProcessChannel
    const liveEvents = settings.deliver || isShared ? new LiveEvents({ bus, clock, instruments }) : null
    const acceptedCounter = new AcceptedCounter({
      clock,
      isWanted: () => liveEvents?.countsAccepted === true || eventRelay.hasOtherListeners,
      passOn(counts) {
        liveEvents?.accepted(counts)
        eventRelay.passOnAccepted(counts)
      },
    })
    const subscribers: EventSubscriber[] = [
      bus,
      new EventLog(logger),
      tenantWebhooks,
      notifier,
      eventRelay,
      acceptedCounter,
    ]
    if (metrics !== null) subscribers.push(metrics.subscriber)
    const events = new EventStream(logger, subscribers)
    const shared = { store, clock, ids, vault, events, instruments, tracing, defaultPolicy: settings.retry }
    const createEngine = async (kinds: readonly string[]) => {
      const schedule = await backend.openSchedule(store, events)
      const endpointChanged = (endpointId: string, appId: string) =>
        context.endpointChanged(endpointId, appId)
      const transport = replacements.transport ?? router
      const isAgentAbsent = (endpoint: Endpoint) => presence.isAbsent(endpoint)
      return new Engine(
        { ...shared, schedule, transport, kinds, random, logger, isAgentAbsent, endpointChanged },
        { ...settings, laneConcurrency: settings.concurrency, userAgent: `Posthorn/${VERSION}` },
      )
    }
    const presence = new Presence(store, clock, holder)
    engine = settings.deliver ? await createEngine(router.kinds) : null
    // On PostgreSQL, a process that does not deliver serves the lanes of its agents.
    const agentEngine = new AgentEngine(engine, () => createEngine([]))
    const engineOf = () => agentEngine.current
    const agentHub =
      engine === null && !isShared
        ? null
        : new AgentHub({
            ...{ store, clock, logger, transport: relay, laneServer: () => agentEngine.start() },
            ...{ presence, events, instruments },
            newToken: () => Buffer.from(getRandomValues(new Uint8Array(12))).toString("base64url"),
            announce: (appId, agent, epoch) => processChannel.post({ kind: "agent", appId, agent, epoch }),
          })
    if (agentHub !== null) metrics?.relay.watch(() => agentHub.counts)
    const context: ResourceContext = {
      ...shared,
      orgId: DEFAULT_ORG,
      random,
      randomBytes,
      maxPayloadBytes: settings.maxPayloadBytes,
      prices: settings.prices,
      router,
      receiver: new Receiver({ store, clock, vault }, () => context),
      presence,
      wake(lanes) {
        engineOf()?.wake(lanes)
        processChannel.post({ kind: "due" })
      },
      endpointChanged(endpointId, appId) {
        engineOf()?.endpointChanged(endpointId, appId)
        agentHub?.endpointChanged(endpointId, appId)
        processChannel.post({ kind: "changed", endpointId, appId })
      },
      recall(which) {
        engineOf()?.recall(which)
        processChannel.post({ kind: "recall", ...which })
      },
      sending: (endpointId) => engineOf()?.sending(endpointId),
      wakeTasks() {
        engineOf()?.tasks.wake()
        processChannel.post({ kind: "tasks" })
      },
    }
    const { closeTimeoutMs } = settings
    const { monitorIntervalMs: intervalMs = MONITOR_INTERVAL_MS } = replacements
    const alerting = openAlerts({
      ...{ store, clock, ids, logger, notifier, vault },
      storeUrl: options.store,
    })
    const listeners: MonitorListener[] = [new OverviewRecorder(store, clock), alerting.evaluator]
    if (metrics !== null) listeners.unshift(metrics.storeWide)
    const monitor =
      engine === null || intervalMs === null
        ? null
        : new Monitor({ ...shared, presence, logger, holder, intervalMs, listeners })
    const isLeader = () => monitor?.isLeader ?? false
    metrics?.storeWide.watchLeader(isLeader)
    metrics?.storeWide.watchAlerts(() => alerting.evaluator.firing(isLeader()))
    const parts = {
      engine,
      agentEngine,
      agentHub,
      monitor,
      metrics,
      bus,
      liveEvents,
      tenantWebhooks,
      notifier,
      alerting,
      eventRelay,
      backend,
      guard,
      router,
      closeTimeoutMs,
    }
    posthorn = new Posthorn(context, parts)
    await applyAlerts(posthorn, settings.alerts)
    await processChannel.start((note) => hear(note, { engine: engineOf(), agentHub, eventRelay, liveEvents }))
    eventRelay.start()
    await engine?.start()
    monitor?.start()
    return posthorn
  } catch (error) {
    engine?.abandon()
    await processChannel.close()
    await store.close()
    throw error
  }
}

/** Writes nothing unless all of it is valid. Without settings the store is not read: a start takes no longer. */
async function applyAlerts(posthorn: Posthorn, alerts: AlertsInput): Promise<void> {
  if (Object.keys(alerts).length === 0) return
  const { channels = {}, ...others } = alerts
  const writeChannels = await posthorn.alertChannels.prepare(channels, "alerts.channels")
  const writeOthers = await posthorn.alerts.prepare(others, "alerts")
  await writeChannels()
  await writeOthers()
}

interface Listeners {
  readonly engine: Engine | null
  readonly agentHub: AgentHub | null
  readonly eventRelay: EventRelay
  readonly liveEvents: LiveEvents | null
}

function hear(note: Note, { engine, agentHub, eventRelay, liveEvents }: Listeners): void {
  switch (note.kind) {
    case "due":
      return engine?.hint()
    case "changed":
      agentHub?.endpointChanged(note.endpointId, note.appId)
      return engine?.endpointChanged(note.endpointId, note.appId)
    case "agent":
      return agentHub?.heardOf(note.appId, note.agent, note.epoch)
    case "recall":
      return engine?.recall(note)
    case "tasks":
      return engine?.tasks.wake()
    case "asking":
    case "listening":
    case "events":
      return eventRelay.hear(note)
    case "accepted":
      return liveEvents?.accepted(note.counts)
  }
}

interface PosthornParts {
  readonly engine: Engine | null
  readonly agentEngine: AgentEngine
  readonly agentHub: AgentHub | null
  readonly monitor: Monitor | null
  readonly metrics: Metrics | null
  readonly bus: EventBus
  readonly liveEvents: LiveEvents | null
  readonly tenantWebhooks: TenantWebhooks
  readonly notifier: ChannelNotifier
  readonly alerting: OpenAlerts
  readonly eventRelay: EventRelay
  readonly backend: Backend
  readonly guard: Guard
  readonly router: TransportRouter
  readonly closeTimeoutMs: number
}

const MOST_TENANTS = 1000

/** An open Posthorn, which is also the default tenant. Every method rejects with a `PosthornError`. */
export class Posthorn extends Tenant {
  readonly alerts: Alerts
  /** Where alerts and notices about dead letters are sent. */
  readonly alertChannels: AlertChannels
  readonly #parts: PosthornParts
  /** The server needs one for each request. */
  readonly #tenants = new BoundedCache<string, Tenant>(MOST_TENANTS)
  #closing: Promise<void> | null = null
  #firstSnapshot: Promise<void> | null = null

  /** Use `openPosthorn`. */
  constructor(context: ResourceContext, parts: PosthornParts) {
    super(context)
    this.#parts = parts
    this.alerts = parts.alerting.alerts
    this.alertChannels = new AlertChannels(context, parts.notifier)
  }

  /** @internal Used by the server. */
  get tenantWebhooks(): TenantWebhooks {
    return this.#parts.tenantWebhooks
  }

  /** @internal Tests send notifications by hand. */
  get notifier(): ChannelNotifier {
    return this.#parts.notifier
  }

  /** @internal Used by the server. Null: the events are in another process, which this one cannot hear (SQLite). */
  get liveEvents(): LiveEvents | null {
    return this.#parts.liveEvents
  }

  /** @internal Of all tenants. Null: the leader of the processes that deliver has made no snapshot yet. */
  async overview(): Promise<Overview | null> {
    const { store, clock } = this.context
    const read = async () => (await new OverviewStore(store).read(clock.now())).overview
    const overview = await read()
    const { monitor } = this.#parts
    if (overview !== null || monitor === null) return overview
    // The first snapshot of a new store would be made 15 s after the start. It is made once for all that ask.
    this.#firstSnapshot ??= monitor.runOnce()
    await this.#firstSnapshot
    return read()
  }

  /** Another tenant, `org_…`. Its data are apart from all others; it needs no creation. */
  tenant(orgId: string, { ids }: { readonly ids?: Ids } = {}): Tenant {
    if (ids !== undefined) return new Tenant({ ...this.context, orgId: requireOrg(orgId), ids })
    const known = this.#tenants.get(orgId)
    if (known !== undefined) return known
    const tenant = new Tenant({ ...this.context, orgId: requireOrg(orgId) })
    this.#tenants.set(orgId, tenant)
    return tenant
  }

  /** Returns a function that ends the subscription. `gateway:webhooks` gets all events. */
  on<N extends keyof EventMap>(name: N, listener: Listener<EventMap[N]>): () => void {
    return this.#parts.bus.on(name, listener)
  }

  /** Checks the store with a write, and the schedule. */
  async health(): Promise<Health> {
    try {
      await this.context.store.check()
      const { engine, backend } = this.#parts
      const problem = engine === null ? await backend.checkSchedule() : engine.problem
      return { ready: true, problem }
    } catch (error) {
      return { ready: false, problem: (error as Error).message }
    }
  }

  /** The metrics, for `registry.metrics()` or `Registry.merge`; null without the option `metrics`. */
  get registry(): Registry | null {
    return this.#parts.metrics?.registry ?? null
  }

  /** @internal Tests drive its parts by hand. */
  get engine(): Engine | null {
    return this.#parts.engine
  }

  /** @internal Null in a process that cannot hold agents: another one delivers from its SQLite file. */
  get agentHub(): AgentHub | null {
    return this.#parts.agentHub
  }

  /** @internal Null in a process that does not deliver. */
  get monitor(): Monitor | null {
    return this.#parts.monitor
  }

  /** Starts no more requests, waits for those in flight up to `closeTimeoutMs`, writes their outcomes and closes the store. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const { engine, agentEngine, agentHub, monitor, liveEvents, tenantWebhooks, eventRelay, backend } =
      this.#parts
    const { alerting, guard, router, closeTimeoutMs } = this.#parts
    agentHub?.drain()
    // The next leader reads what the alerts save last.
    const monitoringEnded = alerting.evaluator.close(closeTimeoutMs).then(() => monitor?.stop())
    await Promise.all([monitoringEnded, engine?.stop(closeTimeoutMs), agentEngine.stop(closeTimeoutMs)])
    await agentHub?.close()
    await engine?.transport.close()
    // Without an engine, and in tests with another transport, it still sends tests of channels.
    await router.close()
    await tenantWebhooks.settled()
    await this.context.receiver.flush()
    liveEvents?.close()
    eventRelay.close()
    await backend.processChannel.close()
    guard.close()
    await this.context.store.close()
  }

  /** @internal The store is lost. */
  abandon(): void {
    const { engine, agentEngine, monitor, liveEvents, eventRelay, backend } = this.#parts
    monitor?.abandon()
    engine?.abandon()
    agentEngine.abandon()
    liveEvents?.close()
    eventRelay.close()
    void backend.processChannel.close()
  }
}

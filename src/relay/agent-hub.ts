/**
 * The agents that are connected to this process: binds their endpoints to their connections, so that this process alone claims those lanes,
 * and lets the newest connection of an agent replace the older ones, in this process and in others.
 */
import { agentUrl } from "../core/agent-url.ts"
import type { Clock, Timer } from "../core/clock.ts"
import { CLOSE, type HelloFrame } from "../core/relay-protocol.ts"
import type { EndReason } from "../core/relay-results.ts"
import { EndOfTick } from "../end-of-tick.ts"
import type { Woken } from "../engine/engine.ts"
import type { AgentEvent, EventSink } from "../observe/event-stream.ts"
import type { Instruments } from "../observe/instruments.ts"
import type { Logger } from "../observe/log.ts"
import type { Store } from "../store/store.ts"
import { AgentSession, type AgentSocket } from "../transport/relay/agent-session.ts"
import type { RelayTransport } from "../transport/relay/relay.ts"
import { entryNameOf } from "./agent-record.ts"
import { type AgentOwner, LEASE_MS, type Presence } from "./presence.ts"

export type { AgentSocket } from "../transport/relay/agent-session.ts"

/** The engine, as far as agents concern it. */
export interface LaneServer {
  serve(endpoints: readonly string[]): void
  wake(lanes: readonly Woken[]): void
  reachChanged(endpointId: string): void
}

/** The key with which an agent has come. */
export interface AgentAccess extends AgentOwner {
  /** The only endpoints that the key reaches; null: all of its application. */
  readonly endpointIds: readonly string[] | null
  /** Whether the key is still good. Rejects when the store cannot say. */
  isStillValid(): Promise<boolean>
}

export interface AgentHubParts {
  readonly store: Pick<Store, "getEndpoint" | "listEndpoints">
  readonly clock: Clock
  readonly logger: Logger
  readonly transport: RelayTransport
  readonly presence: Presence
  readonly events: EventSink
  readonly instruments: Instruments
  newToken(): string
  /** Starts the engine of a process that does not deliver otherwise. */
  laneServer(): Promise<LaneServer>
  /** Tells the other processes of a new connection. */
  announce(appId: string, agent: string, epoch: number): void
}

interface Connected {
  readonly session: AgentSession
  readonly access: AgentAccess
  readonly agent: string
  readonly version: string
  readonly epoch: number
  endpoints: readonly string[]
  isWelcomed: boolean
  isBinding: boolean
  bindsAgain: boolean
}

/** A lost note, a revoked key, or an endpoint that another program changed takes effect within this time. */
const CHECK_MS = 30_000
const RENEW_MS = LEASE_MS / 4
const PAGE = 250
const REPLACED = "a newer connection of this agent replaced this one"

export class AgentHub {
  readonly #parts: AgentHubParts
  readonly #greeting = new Map<AgentSession, AgentAccess>()
  /** Every session that was greeted, until it ends. */
  readonly #agents = new Map<AgentSession, Connected>()
  /** The newest session of each agent, by the name of its entry. */
  readonly #newest = new Map<string, Connected>()
  readonly #writing = new Set<Promise<void>>()
  #lanes: LaneServer | null = null
  /** Once a tick: the cut of a network ends all connections at once, and each call names every endpoint that is served. */
  readonly #serving = new EndOfTick<void>(() => {
    this.#lanes?.serve(this.#parts.transport.endpoints)
    this.#lanes?.wake(this.#woken.splice(0))
  })
  /** Lanes that are served from the end of this tick on. */
  readonly #woken: Woken[] = []
  #timers: Timer[] = []
  #isClosed = false

  constructor(parts: AgentHubParts) {
    this.#parts = parts
    parts.presence.attach(this)
  }

  /** The agents that are connected to this process, and their events in flight. */
  get counts(): { readonly agents: number; readonly inFlight: number } {
    const sessions = [...this.#agents.keys()]
    return { agents: sessions.length, inFlight: sessions.reduce((sum, one) => sum + one.inFlight, 0) }
  }

  /** Null: the agent is not connected to this process. */
  inFlightOf(entryName: string): number | null {
    return this.#newest.get(entryName)?.session.inFlight ?? null
  }

  /** Takes a connection whose key was checked. */
  connect(socket: AgentSocket, access: AgentAccess): AgentSession {
    const { clock, newToken, instruments } = this.#parts
    const session = new AgentSession(socket, clock, newToken, {
      greeted: (one, hello) => void this.#greeted(one, hello),
      reachChanged: (one) => this.#reachChanged(one),
      acknowledged: (result) => instruments.eventAcknowledged(result),
      ended: (one, reason, detail) => this.#ended(one, reason, detail),
    })
    this.#greeting.set(session, access)
    if (this.#isClosed) session.end(CLOSE.goingAway, "the server stops")
    return session
  }

  async #greeted(session: AgentSession, { agent, version }: HelloFrame): Promise<void> {
    const access = this.#greeting.get(session)!
    const { presence, announce, laneServer, logger, instruments } = this.#parts
    try {
      this.#lanes ??= await laneServer()
      if (this.#timers.length === 0) await this.#begin()
      if (access.endpointIds !== null && (await this.#endpointsOf(access, agent)).length === 0)
        return session.end(CLOSE.badKey, "the key is not for this agent: none of its endpoints has this name")
      const epoch = await presence.connected(access, agent, version, access.endpointIds)
      const connected: Connected = {
        ...{ session, access, agent, version, epoch },
        ...{ endpoints: [], isWelcomed: false, isBinding: false, bindsAgain: false },
      }
      this.#greeting.delete(session)
      this.#agents.set(session, connected)
      // Its end was counted already.
      if (session.isEnded) return this.#forget(connected)
      announce(access.appId, agent, epoch)
      const before = this.#newest.get(nameOf(connected))
      if ((before?.epoch ?? 0) > epoch) return session.end(CLOSE.replaced, REPLACED)
      this.#newest.set(nameOf(connected), connected)
      // The older one may be half open, and nobody would notice for 45 seconds.
      before?.session.end(CLOSE.replaced, REPLACED)
      session.welcome({ session: `${presence.holder}.${epoch}`, epoch })
      connected.isWelcomed = true
      instruments.agentConnection("accepted")
      this.#tell(connected, "agent.connected", null, null)
      await this.#bindAgain(connected)
    } catch (error) {
      logger.warn({ err: error, agent, app_id: access.appId }, "An agent could not be connected")
      session.end(CLOSE.unavailable, "the server cannot take the agent now")
    }
  }

  /** Finds the agent's endpoints, and serves their lanes. */
  async #bind(connected: Connected): Promise<void> {
    const { session, access, agent } = connected
    const { appId } = access
    const { transport, clock } = this.#parts
    const found = await this.#endpointsOf(access, agent)
    // An agent that leaves keeps what is in flight, and gets nothing more.
    if (session.reach === "absent") return
    const added = found.filter((id) => transport.sessionOf(id) !== session)
    const removed = connected.endpoints.filter((id) => !found.includes(id))
    connected.endpoints = found
    for (const id of added) transport.bind(id, session)
    const now = clock.now()
    for (const endpointId of added) this.#woken.push({ endpointId, appId, dueAt: now, transport: "relay" })
    if (added.length + removed.length > 0) this.#serve(removed, session)
  }

  async #endpointsOf({ appId, endpointIds }: AgentAccess, agent: string): Promise<string[]> {
    const { store } = this.#parts
    const url = agentUrl(agent)
    if (endpointIds !== null) {
      const rows = await Promise.all(endpointIds.map((id) => store.getEndpoint(appId, id)))
      return rows.filter((row) => row?.url === url).map((row) => row!.id)
    }
    const found: string[] = []
    for (let from: string | null = null; ; from = found.at(-1)!) {
      const page = { limit: PAGE, order: "ascending", from, back: false } as const
      const rows = await store.listEndpoints({ appId, url }, page)
      found.push(...rows.map(({ id }) => id))
      if (rows.length < PAGE) return found
    }
  }

  /** The lanes of the endpoints that this session lost go back at once: the agent may be connected to another process. */
  #serve(lost: readonly string[], session: AgentSession): void {
    const { transport } = this.#parts
    const own = lost.filter((id) => transport.sessionOf(id) === session)
    for (const id of own) transport.unbind(id)
    this.#serving.add()
    for (const id of own) this.#lanes?.reachChanged(id)
  }

  #reachChanged(session: AgentSession): void {
    const connected = this.#agents.get(session)
    if (connected === undefined) return
    const { endpoints } = connected
    if (session.reach === "absent") {
      connected.endpoints = []
      return this.#serve(endpoints, session)
    }
    // Each endpoint is first in turn: one with a backlog must not take all of the agent's credit.
    connected.endpoints = [...endpoints.slice(1), ...endpoints.slice(0, 1)]
    for (const id of endpoints) this.#lanes?.reachChanged(id)
  }

  #ended(session: AgentSession, reason: EndReason, detail: string): void {
    this.#parts.instruments.agentConnection(`closed_${reason}`)
    this.#greeting.delete(session)
    const connected = this.#agents.get(session)
    if (connected === undefined) return
    this.#forget(connected)
    if (connected.isWelcomed) this.#tell(connected, "agent.disconnected", reason, detail)
  }

  #tell(
    connected: Connected,
    type: AgentEvent["type"],
    reason: EndReason | null,
    detail: string | null,
  ): void {
    const { events, clock } = this.#parts
    const { access, agent, version, epoch } = connected
    const { orgId, appId } = access
    events.emit({ type, agent, version, epoch, appId, orgId, reason, detail, at: clock.now() })
  }

  #forget(connected: Connected): void {
    const { presence, logger } = this.#parts
    const { session, access, agent, epoch, endpoints } = connected
    this.#agents.delete(session)
    this.#parts.transport.ended(session)
    if (this.#newest.get(nameOf(connected)) === connected) this.#newest.delete(nameOf(connected))
    this.#serve(endpoints, session)
    const write = presence.disconnected(access, agent, epoch).catch((error) => {
      logger.warn(
        { err: error, ...about(connected) },
        "The end of an agent's connection could not be written",
      )
    })
    this.#writing.add(write)
    void write.finally(() => this.#writing.delete(write))
  }

  /** Another process has a newer connection of this agent. */
  heardOf(appId: string, agent: string, epoch: number): void {
    const ours = this.#newest.get(entryNameOf(appId, agent))
    if (ours !== undefined && ours.epoch < epoch) ours.session.end(CLOSE.replaced, REPLACED)
  }

  /** An endpoint of this application was created, changed or deleted. */
  endpointChanged(appId: string): void {
    for (const one of this.#agents.values()) if (one.access.appId === appId) void this.#bindAgain(one)
  }

  /** One read at a time, and one more for all changes meanwhile. */
  async #bindAgain(connected: Connected): Promise<void> {
    connected.bindsAgain = true
    if (connected.isBinding) return
    connected.isBinding = true
    try {
      while (connected.bindsAgain && !connected.session.isEnded) {
        connected.bindsAgain = false
        await this.#bind(connected)
      }
    } catch (error) {
      this.#parts.logger.warn({ err: error, ...about(connected) }, "An agent's endpoints could not be read")
    } finally {
      connected.isBinding = false
    }
  }

  async #begin(): Promise<void> {
    await this.#renew()
    if (this.#timers.length > 0 || this.#isClosed) return
    this.#timers = [
      this.#every(RENEW_MS, 0, () => this.#renew()),
      this.#every(CHECK_MS, 1, () => this.checkOnce()),
    ]
  }

  /** Runs again when the run before has ended. */
  #every(intervalMs: number, place: number, run: () => Promise<void>): Timer {
    const { clock, logger } = this.#parts
    return clock.setTimer(intervalMs, () => {
      run()
        .catch((error) => logger.warn({ err: error }, "Agents could not be checked; trying again"))
        .finally(() => {
          if (!this.#isClosed) this.#timers[place] = this.#every(intervalMs, place, run)
        })
    })
  }

  #renew(): Promise<void> {
    const busy = [...this.#newest].filter(([, { session }]) => session.inFlight > 0)
    return this.#parts.presence.renew(
      Object.fromEntries(busy.map(([name, { session }]) => [name, session.inFlight])),
    )
  }

  /** Ends connections whose key was revoked or that were replaced, and reads the endpoints again. */
  async checkOnce(): Promise<void> {
    for (const connected of [...this.#agents.values()]) {
      try {
        await this.#check(connected)
      } catch (error) {
        this.#parts.logger.warn(
          { err: error, ...about(connected) },
          "An agent could not be checked; trying again",
        )
      }
    }
  }

  async #check(connected: Connected): Promise<void> {
    const { session, access, agent, epoch } = connected
    if (!(await access.isStillValid())) session.end(CLOSE.badKey, "the key was revoked or has expired")
    else if ((await this.#parts.presence.epochOf(access, agent)) > epoch)
      session.end(CLOSE.replaced, REPLACED)
    else await this.#bindAgain(connected)
  }

  /** Asks every agent to leave. Their events in flight go on. */
  drain(): void {
    this.#isClosed = true
    for (const timer of this.#timers) timer.cancel()
    for (const session of this.#greeting.keys()) session.end(CLOSE.goingAway, "the server stops")
    for (const session of [...this.#agents.keys()]) session.drain()
  }

  /** Call it when the engine has stopped. */
  async close(): Promise<void> {
    this.drain()
    for (const session of [...this.#agents.keys()]) session.end(CLOSE.goingAway, "the server stops")
    await Promise.all(this.#writing)
    if (this.#lanes !== null) await this.#parts.presence.endLease().catch(() => {})
  }
}

function nameOf({ access, agent }: Connected): string {
  return entryNameOf(access.appId, agent)
}

function about({ access, agent, epoch }: Connected) {
  return { agent, app_id: access.appId, epoch }
}

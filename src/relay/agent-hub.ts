/** The agents that are connected to this process. The newest connection of an agent replaces the older ones, in all processes. */
import { agentUrl } from "../core/agent-url.ts"
import type { Timer } from "../core/clock.ts"
import { CLOSE, type HelloFrame } from "../core/relay-protocol.ts"
import type { EndReason } from "../core/relay-results.ts"
import type { AgentEvent, EventSink } from "../observe/event-stream.ts"
import type { Instruments } from "../observe/instruments.ts"
import { AgentSession, type AgentSocket } from "../transport/relay/agent-session.ts"
import { AgentLanes, type AgentLanesParts, type LaneServer } from "./agent-lanes.ts"
import { entryNameOf } from "./agent-record.ts"
import { type AgentAccess, about, type ConnectedAgent, entryNameFor } from "./connected-agent.ts"
import { LEASE_MS, type Presence } from "./presence.ts"

export type { AgentSocket } from "../transport/relay/agent-session.ts"

export interface AgentHubParts extends AgentLanesParts {
  readonly presence: Presence
  readonly events: EventSink
  readonly instruments: Instruments
  newToken(): string
  /** Starts the engine of a process that does not deliver otherwise. */
  laneServer(): Promise<LaneServer>
  /** Tells the other processes of a new connection. */
  announce(appId: string, agent: string, epoch: number): void
}

interface Connected extends ConnectedAgent {
  epoch: number
  isWelcomed: boolean
}

interface EndedConnection {
  readonly connected: Connected
  readonly endedAt: number
}

/** A lost note, a revoked key, or an endpoint that another program changed takes effect within this time. */
const CHECK_MS = 30_000
const RENEW_MS = LEASE_MS / 4
const CROWDED = "the application has too many agents, and no endpoint has the URL of this one"
const REPLACED = "a newer connection of this agent replaced this one"

export class AgentHub {
  readonly #parts: AgentHubParts
  readonly #greeting = new Map<AgentSession, AgentAccess>()
  /** Every session that was greeted, until it ends. */
  readonly #agents = new Map<AgentSession, Connected>()
  /** The newest session of each agent, by the name of its entry. */
  readonly #newest = new Map<string, Connected>()
  readonly #writing = new Set<Promise<void>>()
  /** Ends of connections that the store did not take. Until they are written, other processes count those agents as connected. */
  readonly #unwritten = new Set<EndedConnection>()
  readonly #lanes: AgentLanes
  #timers: Timer[] = []
  #isClosed = false

  constructor(parts: AgentHubParts) {
    this.#parts = parts
    this.#lanes = new AgentLanes(parts)
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
      reachChanged: (one) => this.#lanes.reachChanged(one),
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
      if (!this.#lanes.isStarted) this.#lanes.start(await laneServer())
      if (this.#timers.length === 0) await this.#begin()
      if (!(await this.#lanes.reaches(access, agent)))
        return session.end(CLOSE.badKey, `the key reaches no endpoint with the URL ${agentUrl(agent)}`)
      const epoch = await presence.connected(access, agent, version, access.endpointIds)
      if (epoch === null) return session.end(CLOSE.unavailable, CROWDED)
      const connected: Connected = { session, access, agent, version, epoch, isWelcomed: false }
      this.#greeting.delete(session)
      this.#agents.set(session, connected)
      // Its end was counted already.
      if (session.isEnded) return this.#forget(connected)
      announce(access.appId, agent, epoch)
      const before = this.#newest.get(entryNameFor(connected))
      if ((before?.epoch ?? 0) > epoch) return session.end(CLOSE.replaced, REPLACED)
      this.#newest.set(entryNameFor(connected), connected)
      // The older one may be half open, and nobody would notice for 45 seconds.
      before?.session.end(CLOSE.replaced, REPLACED)
      session.welcome({ session: `${presence.holder}.${epoch}`, epoch })
      connected.isWelcomed = true
      instruments.agentConnection("accepted")
      this.#tell(connected, "agent.connected", null, null)
      await this.#lanes.serve(connected)
    } catch (error) {
      logger.warn({ err: error, agent, app_id: access.appId }, "An agent could not be connected")
      session.end(CLOSE.unavailable, "the server cannot take the agent now")
    }
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
    const { session } = connected
    this.#agents.delete(session)
    this.#parts.transport.ended(session)
    if (this.#newest.get(entryNameFor(connected)) === connected) this.#newest.delete(entryNameFor(connected))
    this.#lanes.release(session)
    const write = this.#writeEnd({ connected, endedAt: this.#parts.clock.now() })
    this.#writing.add(write)
    void write.finally(() => this.#writing.delete(write))
  }

  /** Never rejects. The next renewal tries again after a failure. */
  async #writeEnd(ended: EndedConnection): Promise<void> {
    const { presence, logger } = this.#parts
    const { connected, endedAt } = ended
    const { access, agent, epoch } = connected
    try {
      await presence.disconnected(access, agent, epoch, endedAt)
    } catch (error) {
      this.#unwritten.add(ended)
      const text = "The end of an agent's connection could not be written; trying again"
      logger.warn({ err: error, ...about(connected) }, text)
    }
  }

  /** Another process has a newer connection of this agent. */
  heardOf(appId: string, agent: string, epoch: number): void {
    const ours = this.#newest.get(entryNameOf(appId, agent))
    if (ours !== undefined && ours.epoch < epoch) ours.session.end(CLOSE.replaced, REPLACED)
  }

  /** An endpoint of this application was created, changed or deleted. */
  endpointChanged(endpointId: string, appId: string): void {
    this.#lanes.endpointChanged(endpointId, appId)
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

  async #renew(): Promise<void> {
    const busy = [...this.#newest].filter(([, { session }]) => session.inFlight > 0)
    await this.#parts.presence.renew(
      Object.fromEntries(busy.map(([name, { session }]) => [name, session.inFlight])),
    )
    const unwritten = [...this.#unwritten]
    this.#unwritten.clear()
    await Promise.all(unwritten.map((ended) => this.#writeEnd(ended)))
  }

  /** Ends connections whose key was revoked or that were replaced, counts those again that were overtaken, and reads the endpoints again. */
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
    const { session, access } = connected
    if (!(await access.isStillValid())) return session.end(CLOSE.badKey, "the key was revoked or has expired")
    if (session.isEnded) return
    if (await this.#isNewest(connected)) await this.#lanes.refresh(session)
    else session.end(CLOSE.replaced, REPLACED)
  }

  async #isNewest(connected: Connected): Promise<boolean> {
    const { session, access, agent, version, epoch } = connected
    const { connectedAt } = session
    const { endpointIds } = access
    const standing = { agent, epoch, version, connectedAt, endpointIds }
    const confirmed = await this.#parts.presence.confirmed(access, standing)
    if (confirmed === null || confirmed === epoch) return confirmed === epoch
    connected.epoch = confirmed
    // Its end was written with the number from before.
    if (session.isEnded) await this.#writeEnd({ connected, endedAt: this.#parts.clock.now() })
    return true
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
    if (this.#lanes.isStarted) await this.#parts.presence.endLease().catch(() => {})
  }
}

/** The lanes of connected agents: binds their endpoints to their connections, so that this process alone claims those lanes. */
import { agentUrl } from "../core/agent-url.ts"
import type { Clock } from "../core/clock.ts"
import { EndOfTick } from "../end-of-tick.ts"
import type { Woken } from "../engine/engine.ts"
import type { Logger } from "../observe/log.ts"
import type { Endpoint, Store } from "../store/store.ts"
import type { AgentSession } from "../transport/relay/agent-session.ts"
import type { RelayTransport } from "../transport/relay/relay.ts"
import { type AgentAccess, about, type ConnectedAgent } from "./connected-agent.ts"

/** The engine, as far as agents concern it. */
export interface LaneServer {
  serve(endpoints: readonly string[]): void
  wake(lanes: readonly Woken[]): void
  reachChanged(endpointId: string): void
}

export interface AgentLanesParts {
  readonly store: Pick<Store, "getEndpoint" | "getEndpoints" | "listEndpoints">
  readonly clock: Clock
  readonly logger: Logger
  readonly transport: RelayTransport
}

interface Binding {
  readonly connected: ConnectedAgent
  /** The first one is the next to take the agent's credit. */
  endpoints: readonly string[]
  isReading: boolean
  readsAgain: boolean
}

const PAGE = 250

export class AgentLanes {
  readonly #parts: AgentLanesParts
  readonly #bindings = new Map<AgentSession, Binding>()
  #server: LaneServer | null = null
  /** Once a tick: the cut of a network ends all connections at once, and each call names every endpoint that is served. */
  readonly #serving = new EndOfTick<void>(() => {
    this.#server?.serve(this.#parts.transport.endpoints)
    this.#server?.wake(this.#woken.splice(0))
  })
  /** Lanes that are served from the end of this tick on. */
  readonly #woken: Woken[] = []
  /** Endpoints that changed since they were read last. */
  readonly #changed = new Set<string>()
  #isReadingChanged = false

  constructor(parts: AgentLanesParts) {
    this.#parts = parts
  }

  get isStarted(): boolean {
    return this.#server !== null
  }

  start(server: LaneServer): void {
    this.#server = server
  }

  /** Whether the key reaches an endpoint of this agent, or all of its application. */
  async reaches(access: AgentAccess, agent: string): Promise<boolean> {
    return access.endpointIds === null || (await this.#endpointsOf(access, agent)).length > 0
  }

  /** Serves the lanes of the agent's endpoints from now on. */
  async serve(connected: ConnectedAgent): Promise<void> {
    const binding = { connected, endpoints: [], isReading: false, readsAgain: false }
    this.#bindings.set(connected.session, binding)
    await this.#refresh(binding)
  }

  /** Reads the agent's endpoints again. */
  async refresh(session: AgentSession): Promise<void> {
    const binding = this.#bindings.get(session)
    if (binding !== undefined) await this.#refresh(binding)
  }

  /** An endpoint of this application was created, changed or deleted. */
  endpointChanged(endpointId: string, appId: string): void {
    if (![...this.#bindings.values()].some(({ connected }) => connected.access.appId === appId)) return
    this.#changed.add(endpointId)
    void this.#readChanged()
  }

  /** The connection takes more events, or none. */
  reachChanged(session: AgentSession): void {
    const binding = this.#bindings.get(session)
    if (binding === undefined) return
    const { endpoints } = binding
    if (session.reach === "absent") {
      binding.endpoints = []
      return this.#serve(endpoints, session)
    }
    // Each endpoint is first in turn: one with a backlog must not take all of the agent's credit.
    binding.endpoints = [...endpoints.slice(1), ...endpoints.slice(0, 1)]
    for (const id of endpoints) this.#server?.reachChanged(id)
  }

  /** The connection has ended. */
  release(session: AgentSession): void {
    const binding = this.#bindings.get(session)
    if (binding === undefined) return
    this.#bindings.delete(session)
    this.#serve(binding.endpoints, session)
  }

  /** One read for all agents, and one more for all changes meanwhile. */
  async #readChanged(): Promise<void> {
    if (this.#isReadingChanged) return
    this.#isReadingChanged = true
    while (this.#changed.size > 0) {
      const ids = new Set(this.#changed)
      this.#changed.clear()
      try {
        this.#refreshConcerned(ids, await this.#parts.store.getEndpoints([...ids]))
      } catch (error) {
        this.#parts.logger.warn({ err: error }, "The changed endpoints of agents could not be read")
      }
    }
    this.#isReadingChanged = false
  }

  #refreshConcerned(ids: ReadonlySet<string>, rows: readonly Endpoint[]): void {
    const named = new Set(rows.map(({ appId, url }) => `${appId} ${url}`))
    for (const binding of this.#bindings.values()) {
      const { access, agent } = binding.connected
      const isNamed = named.has(`${access.appId} ${agentUrl(agent)}`)
      const hadOne = binding.endpoints.some((id) => ids.has(id))
      // A read that is under way may have begun before the change.
      if (isNamed || hadOne || binding.isReading) void this.#refresh(binding)
    }
  }

  /** One read at a time, and one more for all changes meanwhile. */
  async #refresh(binding: Binding): Promise<void> {
    const { connected } = binding
    binding.readsAgain = true
    if (binding.isReading) return
    binding.isReading = true
    try {
      while (binding.readsAgain && !connected.session.isEnded) {
        binding.readsAgain = false
        await this.#bind(binding)
      }
    } catch (error) {
      this.#parts.logger.warn({ err: error, ...about(connected) }, "An agent's endpoints could not be read")
    } finally {
      binding.isReading = false
    }
  }

  async #bind(binding: Binding): Promise<void> {
    const { session, access, agent } = binding.connected
    const { appId } = access
    const { transport, clock } = this.#parts
    const found = await this.#endpointsOf(access, agent)
    // An agent that leaves keeps its events in flight, and gets no more.
    if (session.reach === "absent") return
    const added = found.filter((id) => transport.sessionOf(id) !== session)
    const removed = binding.endpoints.filter((id) => !found.includes(id))
    binding.endpoints = found
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
    for (const id of own) this.#server?.reachChanged(id)
  }
}

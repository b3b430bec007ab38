/** Agents: programs that connect outward and receive the deliveries of `relay://NAME` over that connection. */
import { agentUrl } from "../core/agent-url.ts"
import { AGENT_KIND, agentRecordOf, entryNameOf } from "../relay/agent-record.ts"
import type { AgentStatus } from "../relay/agent-status.ts"
import type { Entry, Page } from "../store/store.ts"
import { byName, type Listing, listing, type PageInput } from "./paging.ts"
import {
  date,
  optionalApplicationId,
  type ResourceContext,
  requireApplication,
  requireFound,
} from "./resource-context.ts"

export interface Agent {
  /** The NAME of `relay://NAME`. */
  readonly name: string
  readonly appId: string
  /** To any process. */
  readonly connected: boolean
  /** The agent's own words, at its newest connection. Null: it was never connected. */
  readonly version: string | null
  /** Null unless it is connected. */
  readonly connectedSince: Date | null
  /** Now, if it is connected. Null: it was never connected. */
  readonly lastSeenAt: Date | null
  /** Events that were sent to it and not acknowledged; up to 15 s old if it is connected to another process. */
  readonly inFlight: number
  /** The ids of the endpoints of the application that have the URL `relay://NAME`. */
  readonly endpoints: readonly string[]
}

export interface AgentQuery extends PageInput {
  /** Of this application; without it, of all. */
  app?: string
}

interface Row extends Agent {
  readonly entryName: string
}

const PAGE = 250

export class Agents {
  readonly #context: ResourceContext

  constructor(context: ResourceContext) {
    this.#context = context
  }

  /** Agents that an endpoint names, and those that were connected in the last 30 days; by application and name. */
  list(query: AgentQuery = {}): Listing<Agent> {
    const { store, orgId, clock } = this.#context
    return listing(query, {
      fields: ["app"],
      by: { ...byName, key: ({ entryName }: Row) => entryName },
      read: async ({ app }) => {
        const appId = await optionalApplicationId(this.#context, app)
        return async (page: Page<string>) =>
          this.#read(await store.listEntries(AGENT_KIND, orgId, page, clock.now(), appId))
      },
      show: ({ entryName: _name, ...agent }) => agent,
    })
  }

  /** Rejects with `not_found`. */
  async get(app: string, name: string): Promise<Agent> {
    const { store, orgId, clock } = this.#context
    const { id: appId } = await requireApplication(this.#context, app)
    const entry = await requireFound("agent", name, (key) =>
      store.getEntry(AGENT_KIND, orgId, entryNameOf(appId, key), clock.now()),
    )
    const { entryName: _name, ...agent } = (await this.#read([entry]))[0]!
    return agent
  }

  async #read(entries: readonly Entry[]): Promise<Row[]> {
    const [statuses, ...endpoints] = await Promise.all([
      this.#context.presence.statusesOf(entries),
      ...entries.map((entry) => this.#endpointsOf(entry)),
    ])
    return entries.map((entry, i) => toRow(entry, statuses.get(entry.name)!, endpoints[i]!))
  }

  async #endpointsOf(entry: Entry): Promise<string[]> {
    const filter = { appId: entry.owner!, url: agentUrl(agentRecordOf(entry).name) }
    const ids: string[] = []
    for (let from: string | null = null; ; from = ids.at(-1)!) {
      const page = { limit: PAGE, order: "ascending", from, back: false } as const
      const found = await this.#context.store.listEndpoints(filter, page)
      ids.push(...found.map(({ id }) => id))
      if (found.length < PAGE) return ids
    }
  }
}

function toRow(entry: Entry, status: AgentStatus, endpoints: readonly string[]): Row {
  const { isConnected, version, connectedSince, lastSeenAt, inFlight } = status
  return {
    entryName: entry.name,
    name: agentRecordOf(entry).name,
    appId: entry.owner!,
    connected: isConnected,
    version,
    connectedSince: date(connectedSince),
    lastSeenAt: date(lastSeenAt),
    inFlight,
    endpoints,
  }
}

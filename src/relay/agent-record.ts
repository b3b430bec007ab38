/** What the store knows about an agent: an entry for each name of an application, with the newest connection. */
import type { Entry } from "../store/store.ts"

export const AGENT_KIND = "agent"

export interface AgentRecord {
  readonly name: string
  /** The number of connections so far. A connection with a lower number was replaced. */
  readonly epoch: number
  /** The process that has, or had, the newest connection; null: the agent was never connected. */
  readonly holder: string | null
  /** The agent's own words. */
  readonly version: string | null
  readonly connectedAt: number | null
  /** The only endpoints that the key of the newest connection reaches; null: all of the application. */
  readonly endpointIds: readonly string[] | null
  /** Null while the newest connection stands, as far as its process has told. */
  readonly disconnectedAt: number | null
}

/** The name of an agent's entry. Ids have no dots. */
export function entryNameOf(appId: string, agent: string): string {
  return `${appId}.${agent}`
}

export function agentRecordOf(entry: Pick<Entry, "body">): AgentRecord {
  return JSON.parse(entry.body)
}

export function neverConnected(name: string): AgentRecord {
  return {
    name,
    epoch: 0,
    holder: null,
    version: null,
    connectedAt: null,
    endpointIds: null,
    disconnectedAt: null,
  }
}

/** An agent that is connected to this process. */
import type { AgentSession } from "../transport/relay/agent-session.ts"
import { entryNameOf } from "./agent-record.ts"
import type { AgentOwner } from "./presence.ts"

/** The key with which an agent has come. */
export interface AgentAccess extends AgentOwner {
  /** The only endpoints that the key reaches; null: all of its application. */
  readonly endpointIds: readonly string[] | null
  /** Whether the key is still good. Rejects when the store cannot say. */
  isStillValid(): Promise<boolean>
}

export interface ConnectedAgent {
  readonly session: AgentSession
  readonly access: AgentAccess
  /** The NAME of `relay://NAME`. */
  readonly agent: string
  /** The agent's own words. */
  readonly version: string
  readonly epoch: number
}

export function entryNameFor({ access, agent }: ConnectedAgent): string {
  return entryNameOf(access.appId, agent)
}

/** Fields of log lines. */
export function about({ access, agent, epoch }: ConnectedAgent) {
  return { agent, app_id: access.appId, epoch }
}

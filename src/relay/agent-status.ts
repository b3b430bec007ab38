/** Whether an agent is connected, and when it was last: from its entry and the lease of the process that holds its connection. */
import type { AgentRecord } from "./agent-record.ts"

export interface AgentStatus {
  readonly isConnected: boolean
  /** The agent's own words, at its newest connection. */
  readonly version: string | null
  /** Null unless it is connected. */
  readonly connectedSince: number | null
  /** Null: it was never connected. */
  readonly lastSeenAt: number | null
  /** The only endpoints that its key reaches; null: all of its application. */
  readonly endpointIds: readonly string[] | null
  /** Events that were sent to it and not acknowledged. */
  readonly inFlight: number
}

/** A process that has connections, as it last told. */
export interface Holder {
  /** Its connections count until then. */
  readonly until: number
  readonly seenAt: number
  /** Events in flight by the entry names of agents that have any. */
  readonly inFlight: { readonly [agent: string]: number }
}

export const NEVER_CONNECTED: AgentStatus = {
  isConnected: false,
  version: null,
  connectedSince: null,
  lastSeenAt: null,
  endpointIds: null,
  inFlight: 0,
}

/** `inFlight`: null if the agent's process does not have the connection any more. */
export function statusOf(
  { version, connectedAt, endpointIds, disconnectedAt }: AgentRecord,
  holder: Pick<Holder, "seenAt"> | null,
  inFlight: number | null,
  now: number,
): AgentStatus {
  if (disconnectedAt === null && inFlight !== null)
    return {
      ...{ isConnected: true, version, connectedSince: connectedAt, lastSeenAt: now },
      ...{ endpointIds, inFlight },
    }
  // Nobody wrote the end of the connection if its process was killed.
  const lastSeenAt = disconnectedAt ?? lastOf(connectedAt, holder?.seenAt ?? null)
  return { isConnected: false, version, connectedSince: null, lastSeenAt, endpointIds, inFlight: 0 }
}

function lastOf(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.max(a, b)
}

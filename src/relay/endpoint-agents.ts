/** The agents of endpoints: whether they are connected to any process, and since when. */
import { agentNameOf } from "../core/agent-url.ts"
import type { Endpoint } from "../store/store.ts"
import { entryNameOf } from "./agent-record.ts"
import type { Presence } from "./presence.ts"

export interface EndpointAgent {
  /** The NAME of `relay://NAME`. */
  readonly agent: string
  readonly isConnected: boolean
  /** The agent is connected with a key that does not reach the endpoint. */
  readonly hasOtherKey: boolean
  /** Since when it is, or is not. */
  readonly since: number
  /** Null: it was never connected. */
  readonly lastSeenAt: number | null
}

export type EndpointAgents = ReadonlyMap<string, EndpointAgent>

interface PresenceContext {
  readonly presence: Presence
}

/** By the ids of the endpoints that have one. Nothing is read unless one of them has. */
export async function readAgents(
  { presence }: PresenceContext,
  endpoints: readonly Pick<Endpoint, "id" | "appId" | "url" | "createdAt">[],
): Promise<EndpointAgents> {
  const relayed = endpoints.flatMap(({ id, appId, url, createdAt }) => {
    const agent = agentNameOf(url)
    return agent === null ? [] : [{ id, agent, createdAt, entryName: entryNameOf(appId, agent) }]
  })
  const statuses = await presence.statuses(relayed.map(({ entryName }) => entryName))
  return new Map(
    relayed.map(({ id, agent, createdAt, entryName }): [string, EndpointAgent] => {
      const { isConnected: isThere, connectedSince, lastSeenAt, endpointIds } = statuses.get(entryName)!
      const isReached = endpointIds?.includes(id) ?? true
      // An agent that is absent may have been seen before the endpoint was created.
      const since = Math.max((isThere ? connectedSince : lastSeenAt) ?? 0, createdAt)
      const state = { isConnected: isThere && isReached, hasOtherKey: isThere && !isReached }
      return [id, { agent, ...state, since, lastSeenAt }]
    }),
  )
}

/** Only of endpoints whose agent is not connected. */
export async function readAbsences(
  context: PresenceContext,
  endpoints: Parameters<typeof readAgents>[1],
): Promise<EndpointAgents> {
  return onlyAbsent(await readAgents(context, endpoints))
}

export function onlyAbsent(agents: EndpointAgents): EndpointAgents {
  return new Map([...agents].filter(([, { isConnected }]) => !isConnected))
}

/** Endpoints whose agent is not connected to any process. */
import type { Endpoint } from "../store/store.ts"
import { agentNameOf } from "../transport/relay/relay.ts"
import { entryNameOf } from "./agent-record.ts"
import type { Presence } from "./presence.ts"

export interface Absence {
  /** The NAME of `relay://NAME`. */
  readonly agent: string
  readonly since: number
  /** Null: it was never connected. */
  readonly lastSeenAt: number | null
}

/** By endpoint id. Nothing is read unless one of the endpoints has an agent. */
export async function readAbsences(
  { presence }: { readonly presence: Presence },
  endpoints: readonly Pick<Endpoint, "id" | "appId" | "url" | "createdAt">[],
): Promise<ReadonlyMap<string, Absence>> {
  const relayed = endpoints.flatMap(({ id, appId, url, createdAt }) => {
    const agent = agentNameOf(url)
    return agent === null ? [] : [{ id, agent, createdAt, entryName: entryNameOf(appId, agent) }]
  })
  const statuses = await presence.statuses(relayed.map(({ entryName }) => entryName))
  const absences = relayed.flatMap(({ id, agent, createdAt, entryName }): [string, Absence][] => {
    const { isConnected, lastSeenAt } = statuses.get(entryName)!
    // The agent may have been seen before the endpoint was created.
    return isConnected ? [] : [[id, { agent, since: Math.max(lastSeenAt ?? 0, createdAt), lastSeenAt }]]
  })
  return new Map(absences)
}

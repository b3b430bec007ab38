/** Deletes what runs of `posthorn listen` left behind that were killed a day ago or longer. */
import type { AgentOut } from "../../api/schemas/agent.ts"
import type { ApplicationOut } from "../../api/schemas/application.ts"
import { type Api, ApiFailure, path } from "../api.ts"
import { readList } from "../lists.ts"
import { LIFE_MS, LISTEN_NAME } from "./setup.ts"

/** Returns their names. Rejects when the server does. */
export async function deleteStale(api: Api, app: string | undefined, now: number): Promise<string[]> {
  const route = app === undefined ? "/agent" : path`/app/${app}/agent`
  const { data } = await readList<AgentOut>(api, route, {}, { all: true })
  const deleted: string[] = []
  for (const agent of data) {
    if (!(await isStale(api, agent, now))) continue
    await deleteOf(api, agent)
    deleted.push(agent.name)
  }
  return deleted
}

/** Its key has expired, so its agent cannot come back. */
async function isStale(api: Api, agent: AgentOut, now: number): Promise<boolean> {
  const { name, appId, connected, lastSeenAt, endpoints } = agent
  if (!LISTEN_NAME.test(name) || connected || endpoints.length === 0) return false
  const seenAt =
    lastSeenAt ?? (await api.get<{ createdAt: string }>(path`/app/${appId}/endpoint/${name}`)).createdAt
  return now - new Date(seenAt).getTime() > LIFE_MS
}

async function deleteOf(api: Api, { name, appId }: AgentOut): Promise<void> {
  const { uid } = await api.get<ApplicationOut>(path`/app/${appId}`)
  if (uid === name) return deleteIfThere(api, path`/app/${appId}`)
  await deleteIfThere(api, path`/app/${appId}/source/${name}`)
  await deleteIfThere(api, path`/app/${appId}/endpoint/${name}`)
}

async function deleteIfThere(api: Api, route: string): Promise<void> {
  try {
    await api.send("DELETE", route)
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.status !== 404) throw error
  }
}

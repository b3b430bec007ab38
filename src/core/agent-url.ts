/** The URLs of endpoints that an agent serves: `relay://NAME`. */

export const RELAY_SCHEME = "relay:"
const AGENT_URL = /^relay:\/\/([a-z0-9-]{1,63})$/

/** Null: not the URL of an agent. */
export function agentNameOf(url: string): string | null {
  return AGENT_URL.exec(url)?.[1] ?? null
}

export function agentUrl(name: string): string {
  return `${RELAY_SCHEME}//${name}`
}

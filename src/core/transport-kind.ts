/** Schemes of transports that only some workers serve: their lanes wait for such a worker. */
const SPECIAL = /^\s*(relay):/i

/** The transport of an endpoint, by the scheme of its URL. `http` attempts every other scheme, and refuses what it cannot send. */
export function transportOf(url: string): string {
  return SPECIAL.exec(url)?.[1]?.toLowerCase() ?? "http"
}

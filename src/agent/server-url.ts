/** The URL of the relay on a server, from what a user gives as the server. */
import { invalid } from "../core/errors.ts"
import { RELAY_PATH } from "../core/relay-protocol.ts"

const SCHEMES: { readonly [given: string]: string } = {
  "http:": "ws:",
  "https:": "wss:",
  "ws:": "ws:",
  "wss:": "wss:",
}

/** With or without a path in front of the API, `/api/v1` or the relay's whole path. */
export function relayUrl(server: string): URL {
  const url = URL.parse(server)
  const scheme = SCHEMES[url?.protocol ?? ""]
  if (url === null || scheme === undefined || url.username !== "" || url.search !== "" || url.hash !== "")
    throw invalid("server", "must be a URL such as wss://hooks.example.com, without a user or a query")
  const prefix = url.pathname.replace(/\/*(\/api\/v1(\/relay)?)?\/*$/, "")
  return new URL(`${scheme}//${url.host}${prefix}${RELAY_PATH}`)
}

const LOOPBACK = /^(localhost|.+\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/

/** Only programs on the same machine reach it. */
export function isLoopback({ hostname }: URL): boolean {
  return LOOPBACK.test(hostname)
}

/** A warning as a sentence, or null. */
export function clearTextWarning(url: URL): string | null {
  const { protocol, hostname } = url
  if (protocol === "wss:" || isLoopback(url)) return null
  return `the key and all webhooks travel to ${hostname} in the clear: use wss:// or https://`
}

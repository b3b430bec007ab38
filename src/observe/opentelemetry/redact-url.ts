/** URLs for traces: without credentials, and without query values that look like them. */

const REDACTED = "REDACTED"

/** Beyond the conventions' list (`sig`, `Signature`, `X-Amz-Signature`, `X-Goog-Signature` …): receivers use many names for a secret. */
const SECRET_NAME = /sig|token|secret|key|pass|credential|auth|code/i

export interface RedactedUrl {
  readonly full: string
  readonly host: string
  readonly port: number
}

/** Null for a URL that is not of HTTP, such as a channel's. */
export function redactUrl(text: string): RedactedUrl | null {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol)) return null
  if (url.username !== "") url.username = REDACTED
  if (url.password !== "") url.password = REDACTED
  url.hash = ""
  // The rest of the query stays as it was written.
  url.search = url.search.replace(/([^?&=]+)=[^&]*/g, (pair, name: string) =>
    SECRET_NAME.test(decoded(name)) ? `${name}=${REDACTED}` : pair,
  )
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1")
  return { full: url.href, host, port: Number(url.port) || (url.protocol === "http:" ? 80 : 443) }
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}

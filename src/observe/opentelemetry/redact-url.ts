/** URLs for traces: without credentials, without query values, and without parts of the path that look like a token. */

const REDACTED = "REDACTED"
/** Of secrets of Stripe, Standard Webhooks, GitHub, Slack, GitLab and others, and of our own keys. */
const KNOWN_PREFIX = /^(?:(?:sk|rk|pk|whsec|gh[a-z]|ph)_|(?:sk|xox[a-z]|glpat)-)/i

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
  url.pathname = url.pathname
    .split("/")
    .map((segment) => (isLikeToken(segment) ? REDACTED : segment))
    .join("/")
  url.search = url.search.slice(1).split("&").map(redactParameter).join("&")
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1")
  return { full: url.href, host, port: Number(url.port) || (url.protocol === "http:" ? 80 : 443) }
}

/** The name stays. Without a value the name may be the secret, also if it ends in the padding of Base64. */
function redactParameter(parameter: string): string {
  const [, name, value] = /^([^=]*)=*(.*)$/.exec(parameter)!
  if (parameter === "") return ""
  return value === "" || isLikeToken(name!) ? REDACTED : `${name}=${REDACTED}`
}

/** Receivers such as Slack and Discord know a sender by the path. Some secrets have a known prefix. Words with separators, such as `order-notifications-received`, are none. */
function isLikeToken(text: string): boolean {
  const plain = decoded(text)
  if (KNOWN_PREFIX.test(plain) || /^[\da-f]{12,}$/i.test(plain)) return true
  const hasDigit = /\d/.test(plain)
  if (plain.length >= 20) return hasDigit || /^[a-z]+$/i.test(plain)
  return plain.length >= 8 && hasDigit && /[a-z]/.test(plain) && /[A-Z]/.test(plain)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

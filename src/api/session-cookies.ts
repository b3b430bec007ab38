/**
 * The cookies of sessions. One counts only on a request that names it in the header `posthorn-session`, which no form can set and which
 * a script of another origin cannot send without CORS, and only if the browser does not report another origin.
 */
import type { IncomingHttpHeaders } from "node:http"
import { ApiError } from "./errors.ts"

/** The pages with sessions. An operator may have both open in one browser. */
export const SESSION_PAGES = ["dashboard", "portal"] as const
export type SessionPage = (typeof SESSION_PAGES)[number]

export const SESSION_HEADER = "posthorn-session"

export function isLoopback(host: string): boolean {
  return /^(\[?::1\]?|(::ffff:)?127\.[\d.]+|(.+\.)?localhost)$/.test(host)
}

/** Over plain HTTP browsers keep Secure cookies on loopback alone. */
function isPlain({ protocol, hostname }: URL): boolean {
  return protocol === "http:" && !isLoopback(hostname)
}

export class SessionCookies {
  readonly isSecure: boolean
  readonly #origin: string | null

  constructor(publicUrl: string | null) {
    this.isSecure = publicUrl?.startsWith("https:") === true
    this.#origin = publicUrl === null ? null : new URL(publicUrl).origin
  }

  /** The token of the session that the request names; null: it has none that counts. */
  read(headers: IncomingHttpHeaders): string | null {
    const page = headers[SESSION_HEADER]
    if (page === undefined || !SESSION_PAGES.includes(page as SessionPage)) return null
    if (!this.isSameOrigin(headers)) return null
    const name = this.#nameOf(page as SessionPage)
    for (const one of headers.cookie?.split(";") ?? []) {
      const at = one.indexOf("=")
      if (one.slice(0, at).trim() === name) return one.slice(at + 1).trim()
    }
    return null
  }

  /** Browsers add `Sec-Fetch-Site` on https and loopback, and `Origin` to all requests but same-origin reads. */
  isSameOrigin(headers: IncomingHttpHeaders): boolean {
    const { origin, host, "sec-fetch-site": site } = headers
    if (site !== undefined && site !== "same-origin") return false
    if (origin === undefined || origin === this.#origin) return true
    if (!URL.canParse(origin) || new URL(origin).host !== host) return false
    return !this.isSecure || !isPlain(new URL(origin))
  }

  /** Throws for a request that a page of another origin may have caused. */
  requireSameOrigin(headers: IncomingHttpHeaders): void {
    if (headers[SESSION_HEADER] !== undefined && this.isSameOrigin(headers)) return
    const { origin = "" } = headers
    const isUnsafe = this.isSecure && URL.canParse(origin) && isPlain(new URL(origin))
    const detail = isUnsafe
      ? `browsers sign in over https alone: open ${this.#origin}`
      : "a session can only be opened by the server's own pages; behind a proxy that changes the Host header, set publicUrl; a program sends its key with each request"
    throw ApiError.of(403, "other_origin", detail)
  }

  /** The value of `Set-Cookie`. A null token removes the cookie. */
  write(page: SessionPage, token: string | null, maxAgeSeconds: number): string {
    const attributes = ["Path=/", "HttpOnly", "SameSite=Strict", ...(this.isSecure ? ["Secure"] : [])]
    const age = token === null ? 0 : maxAgeSeconds
    return [`${this.#nameOf(page)}=${token ?? ""}`, `Max-Age=${age}`, ...attributes].join("; ")
  }

  /** A cookie with the prefix `__Host-` cannot be set by another host, or over plain HTTP. */
  #nameOf(page: SessionPage): string {
    return `${this.isSecure ? "__Host-" : ""}posthorn-${page}`
  }
}

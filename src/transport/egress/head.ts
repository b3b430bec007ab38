/** The head of an answer, as text: a status and the few header fields that a sender of webhooks needs. */
import { HEADER_NAME, NOT_IN_A_HEADER } from "../../core/header.ts"
import { EgressError } from "./guard.ts"

const STATUS_LINE = /^HTTP\/1\.([01]) (\d{3})(?: |$)/
const CHUNKED = /(?:^|,)[ \t]*chunked$/i

export interface Head {
  status: number
  /** Where the body ends: after so many bytes, with the last chunk, or with the connection. */
  body: number | "chunks" | "connection"
  /** No other request may follow on this connection. */
  isLast: boolean
  /** How long the receiver keeps a connection that is idle. */
  keepAliveSeconds: number | null
  /** Null as well where there are several. */
  location: string | null
  retryAfter: string | null
}

/** Takes the head without the empty line that ends it. The caller bounds its size, and with that the number of fields. Throws `invalid_response`. */
export function readHead(text: string): Head {
  const fields = new Fields()
  let end = endOfLine(text, 0)
  const first = STATUS_LINE.exec(text.slice(0, end))
  if (first === null || NOT_IN_A_HEADER.test(text.slice(0, end))) throw invalid("no status line")
  while (end < text.length) {
    const start = end + 2
    end = endOfLine(text, start)
    fields.add(text.slice(start, end))
  }
  const status = Number(first[2])
  const { location, retryAfter, keepAliveSeconds } = fields
  const body = fields.bodyOf(status)
  return {
    status,
    body,
    // Before 1.1 a connection was for one request, unless it said otherwise. What announces a body that it cannot have may send it.
    isLast: fields.closes || (first[1] === "0" && !fields.keepsAlive) || fields.announcesMoreThan(body),
    keepAliveSeconds,
    location: location ?? null,
    retryAfter: retryAfter ?? null,
  }
}

class Fields {
  /** Undefined while there was none, null when there were several. */
  location: string | null | undefined
  retryAfter: string | null | undefined
  keepAliveSeconds: number | null = null
  closes = false
  keepsAlive = false
  #contentLength: number | null = null
  #transferEncoding: string | null = null

  add(line: string): void {
    const colon = line.indexOf(":")
    const name = line.slice(0, colon)
    // Also for a line that begins with a space: it would belong to the one before, for those who read it so.
    if (colon === -1 || !HEADER_NAME.test(name) || NOT_IN_A_HEADER.test(line)) throw invalid("no header")
    switch (name.toLowerCase()) {
      case "content-length":
        return this.#addContentLength(line.slice(colon + 1).trim())
      case "transfer-encoding":
        this.#transferEncoding = `${this.#transferEncoding ?? ""},${line.slice(colon + 1).trim()}`
        return
      case "connection":
        return this.#addConnection(line.slice(colon + 1))
      case "keep-alive":
        this.keepAliveSeconds = keepAliveOf(line)
        return
      case "location":
        this.location = this.location === undefined ? line.slice(colon + 1).trim() : null
        return
      case "retry-after":
        this.retryAfter = this.retryAfter === undefined ? line.slice(colon + 1).trim() : null
        return
    }
  }

  #addContentLength(value: string): void {
    if (this.#contentLength !== null || !/^\d{1,15}$/.test(value)) throw invalid("no one length")
    this.#contentLength = Number(value)
  }

  #addConnection(value: string): void {
    const words = value.toLowerCase()
    if (words.includes("close")) this.closes = true
    if (words.includes("keep-alive")) this.keepsAlive = true
  }

  announcesMoreThan(body: Head["body"]): boolean {
    return body === 0 && ((this.#contentLength ?? 0) > 0 || this.#transferEncoding !== null)
  }

  bodyOf(status: number): Head["body"] {
    const encoding = this.#transferEncoding
    if (encoding !== null && this.#contentLength !== null) throw invalid("two lengths of one body")
    if (status < 200 || status === 204 || status === 304) return 0
    if (encoding !== null) return CHUNKED.test(encoding) ? "chunks" : "connection"
    return this.#contentLength ?? "connection"
  }
}

function keepAliveOf(line: string): number | null {
  const seconds = /timeout=(\d{1,6})/i.exec(line)?.[1]
  return seconds === undefined ? null : Number(seconds)
}

function endOfLine(text: string, from: number): number {
  const end = text.indexOf("\r\n", from)
  return end === -1 ? text.length : end
}

function invalid(detail: string): EgressError {
  return new EgressError("invalid_response", detail)
}

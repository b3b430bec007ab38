/** Parses the head of a response: the status and the few header fields that a sender of webhooks needs. */
import { HEADER_NAME, NOT_IN_A_HEADER } from "../../core/header.ts"
import { TransportError } from "../error.ts"

const STATUS_LINE = /^HTTP\/1\.([01]) (\d{3})(?: |$)/
const CHUNKED = /(?:^|,)[ \t]*chunked$/i

export interface ResponseHead {
  status: number
  /** Where the body ends: after this number of bytes, with the last chunk, or with the connection. */
  body: number | "chunked" | "connection"
  /** The connection cannot take another request. */
  isLast: boolean
  /** How long the receiver keeps an idle connection. */
  keepAliveSeconds: number | null
  /** Null also when the header occurs more than once. */
  location: string | null
  retryAfter: string | null
}

/** `text` is the head without the empty line that ends it; the caller limits its size, and so the number of fields. Throws `invalid_response`. */
export function parseResponseHead(text: string): ResponseHead {
  const fields = new Fields()
  let end = endOfLine(text, 0)
  const first = STATUS_LINE.exec(text.slice(0, end))
  if (first === null || NOT_IN_A_HEADER.test(text.slice(0, end))) throw invalid("no valid status line")
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
    // HTTP/1.0 closes unless it says keep-alive. A receiver that announces a body with a 204 or 304 may send that body.
    isLast: fields.closes || (first[1] === "0" && !fields.keepsAlive) || fields.announcesMoreThan(body),
    keepAliveSeconds,
    location: location ?? null,
    retryAfter: retryAfter ?? null,
  }
}

class Fields {
  /** Undefined: no such header. Null: more than one. */
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
    // A line that begins with a space is refused too: old clients read it as a continuation of the line before (obs-fold).
    if (colon === -1 || !HEADER_NAME.test(name) || NOT_IN_A_HEADER.test(line))
      throw invalid("a line of the head is no valid header")
    switch (name.toLowerCase()) {
      case "content-length":
        return this.#addContentLength(line.slice(colon + 1).trim())
      case "transfer-encoding":
        this.#transferEncoding = `${this.#transferEncoding ?? ""},${line.slice(colon + 1).trim()}`
        return
      case "connection":
        return this.#addConnection(line.slice(colon + 1))
      case "keep-alive":
        this.keepAliveSeconds = keepAliveSecondsOf(line)
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
    if (this.#contentLength !== null || !/^\d{1,15}$/.test(value))
      throw invalid("content-length is not one number")
    this.#contentLength = Number(value)
  }

  #addConnection(value: string): void {
    const words = value.toLowerCase()
    if (words.includes("close")) this.closes = true
    if (words.includes("keep-alive")) this.keepsAlive = true
  }

  announcesMoreThan(body: ResponseHead["body"]): boolean {
    return body === 0 && ((this.#contentLength ?? 0) > 0 || this.#transferEncoding !== null)
  }

  bodyOf(status: number): ResponseHead["body"] {
    const encoding = this.#transferEncoding
    if (encoding !== null && this.#contentLength !== null)
      throw invalid("both content-length and transfer-encoding")
    if (status < 200 || status === 204 || status === 304) return 0
    if (encoding !== null) return CHUNKED.test(encoding) ? "chunked" : "connection"
    return this.#contentLength ?? "connection"
  }
}

function keepAliveSecondsOf(line: string): number | null {
  const seconds = /timeout=(\d{1,6})/i.exec(line)?.[1]
  return seconds === undefined ? null : Number(seconds)
}

function endOfLine(text: string, from: number): number {
  const end = text.indexOf("\r\n", from)
  return end === -1 ? text.length : end
}

function invalid(detail: string): TransportError {
  return new TransportError("invalid_response", detail)
}

/** An answer as it is written to the socket. */
import { JSON_TYPE } from "../shapes.ts"

export interface Answer {
  readonly status: number
  readonly requestId: string
  readonly retryAfterSeconds: number | null
  /** JSON. */
  readonly body: string
}

/** Of the answers that postings of messages get. */
const REASONS: { readonly [status: number]: string } = {
  202: "Accepted",
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  409: "Conflict",
  413: "Payload Too Large",
  422: "Unprocessable Entity",
  500: "Internal Server Error",
  503: "Service Unavailable",
}

/** With the header fields of the HTTP server and of the hooks that every other answer goes through. */
export function textOf(answer: Answer, keepAliveMs: number | null): string {
  const { status, requestId, retryAfterSeconds, body } = answer
  const retryAfter = retryAfterSeconds === null ? "" : `retry-after: ${retryAfterSeconds}\r\n`
  const connection =
    keepAliveMs === null
      ? "Connection: close\r\n"
      : `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(keepAliveMs / 1000)}\r\n`
  return (
    `HTTP/1.1 ${status} ${REASONS[status] ?? ""}\r\n` +
    `x-request-id: ${requestId}\r\naccess-control-allow-origin: *\r\n${retryAfter}content-type: ${JSON_TYPE}\r\n` +
    `content-length: ${Buffer.byteLength(body)}\r\nDate: ${date()}\r\n${connection}\r\n${body}`
  )
}

let dateText = ""
let dateSecond = 0

/** It is the same for a second, and takes longer to write than the rest of the head. */
function date(): string {
  const second = Math.floor(Date.now() / 1000)
  if (second !== dateSecond) {
    dateSecond = second
    dateText = new Date(second * 1000).toUTCString()
  }
  return dateText
}

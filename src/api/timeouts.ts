/** Timeouts of connections, and responses to requests that Node cannot parse. */
import type { Server } from "node:http"
import type { FastifyHttpOptions } from "fastify"
import { isRelayUpgrade } from "./relay-socket.ts"

export interface Timeouts {
  /** From the start of a request to the end of its headers. */
  readonly headersMs: number
  /** From the start of a request to the end of its body. */
  readonly requestMs: number
  /** For each step of its processing. */
  readonly handlerMs: number
  /** From the headers of a request to a source to the end of its body. */
  readonly inboundBodyMs: number
  /** Of a connection on which no byte moves in either direction while a request is in progress. */
  readonly silenceMs: number
}

export const TIMEOUTS: Timeouts = {
  headersMs: 10_000,
  requestMs: 30_000,
  handlerMs: 30_000,
  inboundBodyMs: 10_000,
  // Longer than the steps of a request together.
  silenceMs: 180_000,
}

/** Idle time of a connection between two requests. */
const KEEP_ALIVE_MS = 72_000

const ANSWERS: { readonly [code: string]: readonly [number, string, string, string] } = {
  ERR_HTTP_REQUEST_TIMEOUT: [408, "Request Timeout", "timeout", "the request took too long to arrive"],
  HPE_HEADER_OVERFLOW: [
    431,
    "Request Header Fields Too Large",
    "headers_too_large",
    "the headers are too large",
  ],
}
const MALFORMED = [400, "Bad Request", "generic_error", "the request is not valid HTTP"] as const

export function connectionOptions({
  headersMs,
  requestMs,
  silenceMs,
}: Pick<Timeouts, "headersMs" | "requestMs" | "silenceMs">) {
  return {
    http: {
      headersTimeout: headersMs,
      connectionsCheckingInterval: Math.min(headersMs, 1000),
      shouldUpgradeCallback: isRelayUpgrade,
    },
    requestTimeout: requestMs,
    connectionTimeout: silenceMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    clientErrorHandler(error, socket) {
      if (error.code === "ECONNRESET" || !socket.writable) return
      const [status, reason, code, detail] = ANSWERS[error.code ?? ""] ?? MALFORMED
      const body = JSON.stringify({ code, detail })
      socket.end(
        `HTTP/1.1 ${status} ${reason}\r\nConnection: close\r\nContent-Type: application/json\r\n` +
          `Content-Length: ${body.length}\r\n\r\n${body}`,
      )
    },
  } satisfies FastifyHttpOptions<Server>
}

/** Turns the end of an HTTP request, with or without a response, into a `TransportResult`. */
import { type Bytes, toBuffer } from "../core/bytes.ts"
import { describe } from "../core/errors.ts"
import type { FailureCause } from "../core/failure-causes.ts"
import { TransportError } from "./error.ts"
import type { ResponseReader } from "./http1/response.ts"
import type { TransportResult } from "./transport.ts"

const EXCERPT_BYTES = 512

export function forbidden(url: string): TransportResult {
  const outcome = { kind: "failure", cause: "target_forbidden" } as const
  return withoutResponse(outcome, `${url} is not where webhooks may go`)
}

export function withoutResponse(outcome: TransportResult["outcome"], detail: string): TransportResult {
  return {
    outcome,
    responseStatus: null,
    responseBody: null,
    responseTruncated: false,
    detail,
  }
}

export function completed({ head, body, isTruncated }: ResponseReader): TransportResult {
  const { status, location, retryAfter } = head!
  // Redirects are never followed. Their location helps to correct the URL more than their body does. A 304 has no location to go to.
  const isRedirect = status >= 300 && status < 400 && status !== 304 && location !== null
  const shown = isRedirect ? Buffer.from(`redirects to ${location}`) : body
  return {
    outcome: { kind: "response", status, excerpt: status < 300 ? "" : excerpt(shown), retryAfter },
    responseStatus: status,
    responseBody: body,
    responseTruncated: isTruncated,
    detail: null,
  }
}

export function failed({ head, body }: ResponseReader, error: Error): TransportResult {
  return {
    outcome: error === INTERRUPTED ? { kind: "interrupted" } : { kind: "failure", cause: causeOf(error) },
    responseStatus: head?.status ?? null,
    responseBody: body.length === 0 ? null : body,
    responseTruncated: body.length > 0,
    detail: excerpt(Buffer.from(describe(error))),
  }
}

/** The reason of a request that our own shutdown cut off: it is not an attempt. */
export const INTERRUPTED = new Error("interrupted by shutdown")

/** The start of a receiver's text as one line. Control characters and broken UTF-8 are removed: they must not reach a terminal or a log. */
export function excerpt(body: Bytes): string {
  return toBuffer(body)
    .subarray(0, EXCERPT_BYTES)
    .toString("utf8")
    .replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+/gu, " ")
    .trim()
}

const CAUSES: { readonly [code: string]: FailureCause } = {
  ECONNREFUSED: "connection_refused",
  ECONNRESET: "connection_reset",
  EPIPE: "connection_reset",
  ETIMEDOUT: "timeout",
}

/** OpenSSL's codes for certificate errors that do not contain "CERT". */
const TLS_CODES = new Set(
  "EPROTO UNABLE_TO_VERIFY_LEAF_SIGNATURE INVALID_CA INVALID_PURPOSE PATH_LENGTH_EXCEEDED HOSTNAME_MISMATCH".split(
    " ",
  ),
)

export function causeOf(error: Error): FailureCause {
  if (error instanceof TransportError) return error.failure
  // The code of a DOMException is a number.
  const code = String((error as { code?: unknown }).code ?? "")
  if (
    code.startsWith("ERR_TLS") ||
    code.startsWith("ERR_SSL") ||
    code.startsWith("ERR_OSSL") ||
    code.includes("CERT") ||
    TLS_CODES.has(code)
  )
    return "tls_error"
  return CAUSES[code] ?? "network_error"
}

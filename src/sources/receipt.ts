/** The responses to requests of providers. Those bytes may be a stranger's, on our origin: no browser runs them. */
import type { InboundResult, RefusalReason } from "../core/inbound-results.ts"

/** A response, to be sent as it is. */
export interface Receipt {
  readonly result: InboundResult
  readonly status: number
  /** Names in lower case; without the length. */
  readonly headers: { readonly [name: string]: string }
  readonly body: string
  /** Of an accepted webhook, and of its duplicates. */
  readonly messageId: string | null
  /** Why the store refused; null for all other refusals. */
  readonly error: unknown
}

export const SAFE_HEADERS = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "sandbox; default-src 'none'",
} as const

const JSON_HEADERS = { ...SAFE_HEADERS, "content-type": "application/json; charset=utf-8" } as const
const TEXT_HEADERS = { ...SAFE_HEADERS, "content-type": "text/plain; charset=utf-8" } as const

/** One answer for each reason: it does not say what was wrong. */
const REFUSALS: { readonly [R in RefusalReason]: readonly [status: number, code: string, detail: string] } = {
  unknown: [404, "not_found", "there is no such source"],
  rate: [429, "rate_limited", "too many requests for this source; try again"],
  size: [413, "payload_too_large", "the body is larger than this source takes"],
  timeout: [408, "timeout", "the body took too long to arrive"],
  handshake: [401, "verification_failed", "the request could not be verified"],
  signature: [401, "verification_failed", "the request could not be verified"],
  unavailable: [503, "unavailable", "nothing was accepted for now; try again"],
}

const RETRY_AFTER: { readonly [R in RefusalReason]?: string } = { rate: "1", unavailable: "5" }

export function accepted(id: string, duplicate: boolean): Receipt {
  return {
    result: duplicate ? "duplicate" : "accepted",
    status: 202,
    headers: JSON_HEADERS,
    body: JSON.stringify({ id, duplicate }),
    messageId: id,
    error: null,
  }
}

export function challengeAnswered(answer: string): Receipt {
  const empty = { messageId: null, error: null }
  return { result: "handshake", status: 200, headers: TEXT_HEADERS, body: answer, ...empty }
}

export function refused(reason: RefusalReason, error: unknown = null): Receipt {
  const [status, code, detail] = REFUSALS[reason]
  const retryAfter = RETRY_AFTER[reason]
  return {
    result: `refused_${reason}`,
    status,
    headers: retryAfter === undefined ? JSON_HEADERS : { ...JSON_HEADERS, "retry-after": retryAfter },
    body: JSON.stringify({ code, detail }),
    messageId: null,
    error,
  }
}

/** The only error class that Posthorn throws: a stable code, the field to correct, and the cause. */

/** The store cannot carry out calls. */
export const STORE_CODES = [
  "store_in_use",
  "store_moved",
  "store_unavailable",
  "store_full",
  "store_failed",
  "store_incompatible",
] as const

export type ErrorCode =
  | (typeof STORE_CODES)[number]
  | "invalid_input"
  | "payload_too_large"
  | "payload_gone"
  | "not_found"
  | "conflict"
  | "limit_reached"
  | "closed"
  | "wrong_encryption_key"
  | "signature_invalid"
  | "agent_refused"

export interface ErrorDetails {
  readonly field?: string | undefined
  readonly cause?: unknown
}

export class PosthornError extends Error {
  readonly code: ErrorCode
  readonly field: string | undefined

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, { cause: details.cause })
    this.name = "PosthornError"
    this.code = code
    this.field = details.field
  }

  /** The same error for a field inside of `outer`. */
  within(outer: string): PosthornError {
    return new PosthornError(this.code, `${outer}: ${this.message}`, {
      field: `${outer}.${this.field}`,
      cause: this.cause,
    })
  }
}

export function invalid(field: string, problem: string): PosthornError {
  return new PosthornError("invalid_input", `${field} ${problem}`, { field })
}

export function notFound(what: string, id: string): PosthornError {
  return new PosthornError("not_found", `there is no ${what} "${id}"`)
}

export function hasCode(error: unknown, code: ErrorCode): error is PosthornError {
  return error instanceof PosthornError && error.code === code
}

/** The text of a thrown value, for log lines and `error_detail`. */
export function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

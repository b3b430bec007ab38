/** Traces: a span for each call that sends messages, and one for each attempt. The default makes none. */
import type { AttemptKind } from "../core/attempt-kind.ts"
import type { Outcome } from "../core/outcome.ts"
import type { Change } from "../core/settle.ts"

/** No method may throw. */
export interface Tracing {
  /** `traceparent`: the context that the caller names; null: the active context. Null: nobody traces. */
  publishStarted(traceparent: string | null): PublishSpan | null
  /** Null: nobody traces this attempt. */
  attemptStarted(attempt: TracedAttempt): AttemptSpan | null
}

/** One call that sends messages, from its validated input to their commit. */
export interface PublishSpan {
  /** Stored with the messages: the context in which they were created. */
  readonly traceparent: string
  /** One of these two is called, once. */
  ended(published: Published): void
  failed(error: unknown): void
}

export interface Published {
  readonly messageIds: readonly string[]
  /** Of the payloads. */
  readonly bytes: number
  readonly matched: number
  /** Messages that the store had before, by their idempotency keys. */
  readonly duplicates: number
}

/** An attempt whose request is about to be made. */
export interface TracedAttempt {
  readonly delivery: {
    readonly id: string
    readonly messageId: string
    readonly attemptCount: number
    readonly lastAttemptedAt: number | null
    readonly manual: boolean
    readonly stalls: number
    /** Of the message. */
    readonly traceparent: string | null
  }
  readonly endpoint: { readonly id: string; readonly appId: string; readonly url: string }
  readonly kind: AttemptKind
}

/** The first three are of a new connection. A request on a reused connection has none of them. */
export type AttemptPhase = "resolved" | "connected" | "secured" | "first_byte"

export interface AttemptSpan {
  readonly traceId: string
  /** For the receiver. */
  readonly traceparent: string
  mark(phase: AttemptPhase): void
  /** The address at the other end of the connection. */
  peer(address: string): void
  /** Called once. */
  ended(attempt: EndedAttempt): void
}

export interface EndedAttempt {
  readonly outcome: Outcome
  readonly responseStatus: number | null
  /** Null: the attempt does not count, and the delivery is as it was before. */
  readonly change: Change | null
  /** Until the next attempt; null: there is none. */
  readonly retryDelayMs: number | null
}

export const NO_TRACING: Tracing = { publishStarted: () => null, attemptStarted: () => null }

/** One attempt: from a claimed delivery to its settlement. */
import { type AttemptKind, attemptKindOf } from "../core/attempt-kind.ts"
import { writeTiming } from "../core/attempt-timing.ts"
import { describe } from "../core/errors.ts"
import type { Outcome } from "../core/outcome.ts"
import { timeoutMsOf } from "../core/policy.ts"
import { isOverdue, MOST_STALLS, settle } from "../core/settle.ts"
import { cleanTraceparent } from "../core/traceparent.ts"
import type { AttemptSpan } from "../observe/tracing.ts"
import type { AttemptStatus, ClaimedDelivery, GivenBack, NewAttempt, Settlement } from "../store/store.ts"
import { INTERRUPTED } from "../transport/result.ts"
import type { TransportResult } from "../transport/transport.ts"
import type { LaneDependencies } from "./lane-dependencies.ts"
import type { LaneState } from "./lane-state.ts"
import type { TokenAnswer } from "./oauth.ts"
import type { Target } from "./target.ts"

export interface Tried {
  readonly outcome: Outcome
  /** Null when no request was made. */
  readonly result: TransportResult | null
  readonly target: Target | null
  readonly startedAt: number
  readonly kind: AttemptKind
  /** Since when the delivery was due and nothing held its endpoint. */
  readonly dueAt: number
  /** Ended by the caller, which knows what becomes of the delivery. */
  readonly span: AttemptSpan | null
}

/** Never rejects: a failure of our own is an outcome too. */
export async function attempt(
  context: LaneDependencies,
  lane: LaneState,
  delivery: ClaimedDelivery,
  isProbe: boolean,
): Promise<Tried> {
  const startedAt = context.clock.now()
  const { target } = lane
  const kind = attemptKindOf(delivery.manual, isProbe, delivery.attemptCount)
  let dueAt = startedAt
  let span: AttemptSpan | null = null
  const tried = (outcome: Outcome, result: TransportResult | null): Tried => ({
    outcome,
    result,
    target,
    startedAt,
    kind,
    dueAt,
    span,
  })
  try {
    const sendableSince = lane.sendableSince(startedAt)
    dueAt = Math.max(delivery.ageFrom ?? startedAt, sendableSince, lane.gate.heldUntil(startedAt))
    const unsent = whyNotSent(lane, delivery, startedAt, Math.max(sendableSince, upSince(context, startedAt)))
    if (unsent !== null) return tried(unsent, null)
    const { oauth, endpoint, policy } = target!
    span = context.tracing.attemptStarted({ delivery, endpoint, kind })
    let timeoutMs = timeoutMsOf(policy)
    let token: string | null = null
    if (oauth !== null) {
      const answer = await context.tokens.get(endpoint.id, endpoint.version, oauth, timeoutMs)
      if ("outcome" in answer) return tried(answer.outcome, noResponse(answer))
      token = answer.token
      // The token is fetched within the attempt's one deadline.
      timeoutMs = Math.max(1, timeoutMs - (context.clock.now() - startedAt))
    }
    const result = await send(context, target!, delivery, token, timeoutMs, span)
    if (oauth !== null && result.responseStatus === 401) context.tokens.forget(endpoint.id)
    return tried(result.outcome, result)
  } catch (error) {
    context.logger.error(
      { err: error, delivery_id: delivery.id },
      "Posthorn failed on a delivery; it is set back",
    )
    return tried({ kind: "fault", detail: describe(error) }, null)
  }
}

/** A function of its own, so that the caller, which awaits the response, does not keep the request in memory. */
function send(
  { transport, clock }: LaneDependencies,
  target: Target,
  delivery: ClaimedDelivery,
  token: string | null,
  timeoutMs: number,
  span: AttemptSpan | null,
): Promise<TransportResult> {
  const traceparent = target.sendsTraceparent ? traceparentFor(delivery, span) : null
  const request = target.request(delivery, delivery.payload!, clock, token, timeoutMs, traceparent)
  return transport.send(request, span)
}

/** The attempt's span; without one, the context in which the message was created. An operator may have typed any text into the store. */
function traceparentFor({ traceparent }: ClaimedDelivery, span: AttemptSpan | null): string | null {
  return span?.traceparent ?? cleanTraceparent(traceparent)
}

/** Since when neither the store nor our own network was down. */
export function upSince(
  { uptime, outage }: Pick<LaneDependencies, "uptime" | "outage">,
  now: number,
): number {
  return Math.max(uptime.since, outage.overSince(now))
}

/** The outcome of a delivery that ends without a request; null: send it. */
function whyNotSent(
  { target, targetError, gate }: LaneState,
  delivery: ClaimedDelivery,
  now: number,
  sendableSince: number,
): Outcome | null {
  if (delivery.stalls >= MOST_STALLS) return { kind: "stalled" }
  if (gate.deleted) return { kind: "cancelled" }
  if (delivery.payload === null) return { kind: "expunged" }
  if (target === null) return { kind: "fault", detail: targetError }
  return isOverdue(delivery, target.policy, now, sendableSince) ? { kind: "overdue" } : null
}

/** No token was issued: the receiver got no request, but the attempt counts as failed. */
function noResponse({ outcome, detail }: Extract<TokenAnswer, { outcome: unknown }>): TransportResult {
  return { outcome, responseStatus: null, responseBody: null, responseTruncated: false, detail }
}

/** A policy that changed while the request was in flight applies to its outcome. */
export function toSettlement(
  context: LaneDependencies,
  delivery: ClaimedDelivery,
  tried: Tried,
  policy = context.defaultPolicy,
): Settlement {
  const now = context.clock.now()
  const change = settle(delivery, tried.outcome, policy, now, context.random, context.clock.wallNow())
  return {
    delivery,
    change,
    attempt: toRecord(
      context,
      delivery,
      tried,
      change.status === "delivered" ? "succeeded" : "failed",
      change.errorDetail,
    ),
    settledAt: now,
    gate: null,
  }
}

/** A request that does not count may have reached the receiver: the log says so, the delivery's count does not. */
export function toGivenBack(
  context: LaneDependencies,
  delivery: ClaimedDelivery,
  tried: Tried | null,
): GivenBack {
  const attempt = tried && toRecord(context, delivery, tried, "unknown", whyNotCounted(tried))
  return { delivery, attempt }
}

function whyNotCounted({ outcome, result }: Tried): string {
  return outcome.kind === "failure"
    ? `not counted, since no endpoint answers: ${outcome.cause}`
    : (result?.detail ?? INTERRUPTED.message)
}

function toRecord(
  context: LaneDependencies,
  delivery: ClaimedDelivery,
  { target, startedAt, result }: Tried,
  status: AttemptStatus,
  error: string | null,
): NewAttempt | null {
  if (result === null) return null
  const now = context.clock.now()
  return {
    id: context.ids.make("atmpt", now),
    status,
    manual: delivery.manual,
    attemptNumber: delivery.attemptCount + 1,
    url: target!.endpoint.url,
    responseStatus: result.responseStatus,
    responseBody: result.responseBody,
    responseTruncated: result.responseTruncated,
    error,
    startedAt,
    durationMs: now - startedAt,
    timing: result.timing === undefined ? null : writeTiming(result.timing),
  }
}

/** Measurements: counters and timers of engine, stores, schedules and API. An exporter implements this interface. */
import type { AlertChannelKind, NotificationOutcome } from "../core/alert-channel-kinds.ts"
import type { PosthornError } from "../core/errors.ts"
import type { InboundResult } from "../core/inbound-results.ts"
import type { AcknowledgementResult, ConnectionResult } from "../core/relay-results.ts"

/** No method should throw. `withoutThrows` logs the errors of a method that does. */
export interface Instruments {
  /** `performance.now()`, for the durations below. Without a recorder it is 0, and no clock is read. */
  now(): number
  /** Messages of one call, by whichever way they came in. They are committed, or part of the caller's transaction. */
  messagesAccepted(messages: readonly { matched: number; duplicate: boolean }[], tookMs: number): void
  lanesClaimed(lanes: number, tookMs: number): void
  deliveriesFetched(deliveries: number, tookMs: number): void
  /** One batch: outcomes that were written in one transaction. */
  outcomesSettled(outcomes: number, tookMs: number): void
  /** A lane put off its due retries, since its retry budget is spent. */
  retriesDeferred(): void
  leaseRenewed(tookMs: number): void
  lanesTakenOver(lanes: number): void
  /** A call that the store could not carry out. Refusals, such as a conflict, are none. */
  storeFailed(error: PosthornError): void
  redisFailed(error: Error): void
  /** `route` is the pattern, such as `/api/v1/app/:app_id/msg`; null when none matched. */
  requestAnswered(method: string, route: string | null, status: number, tookMs: number): void
  /** A request to a source. */
  inboundAnswered(result: InboundResult, tookMs: number): void
  /** An agent's connection was accepted, refused or closed. */
  agentConnection(result: ConnectionResult): void
  /** An agent acknowledged an event. */
  eventAcknowledged(result: AcknowledgementResult): void
  /** One attempt of a notification. */
  notificationSettled(kind: AlertChannelKind, result: NotificationOutcome): void
  /** Requests in flight of the process, their outcomes not yet written included, and how many more may start. */
  slotsChanged(used: number, free: number): void
  /** How many read the live events of this process. */
  eventStreamReaders(readers: number): void
  /** A reader of the live events that did not keep up was disconnected. */
  eventStreamDropped(): void
}

export const NO_INSTRUMENTS: Instruments = {
  now: () => 0,
  messagesAccepted() {},
  lanesClaimed() {},
  deliveriesFetched() {},
  outcomesSettled() {},
  retriesDeferred() {},
  leaseRenewed() {},
  lanesTakenOver() {},
  storeFailed() {},
  redisFailed() {},
  requestAnswered() {},
  inboundAnswered() {},
  agentConnection() {},
  eventAcknowledged() {},
  notificationSettled() {},
  slotsChanged() {},
  eventStreamReaders() {},
  eventStreamDropped() {},
}

/** Counts an error of the store, unless it is a refusal. */
export function recordStoreError(instruments: Instruments, error: PosthornError): void {
  if (error.code.startsWith("store_")) instruments.storeFailed(error)
}

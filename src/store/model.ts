/** The plain data that every store takes and returns. */
import type { Bytes } from "../core/bytes.ts"
import type { Moment } from "../core/clock.ts"
import type { DisableReason, GateUpdate, LoadedGate } from "../core/gate.ts"
import type { DeadReason } from "../core/policy.ts"
import type { Protection } from "../core/protection.ts"
import type { Change, DeliveryStatus, LiveDelivery } from "../core/settle.ts"
import type { Gate, Waiting } from "../core/wait.ts"

export interface Application {
  readonly id: string
  /** The tenant. Tenants do not see each other. */
  readonly orgId: string
  readonly uid: string | null
  readonly name: string
  readonly metadata: { readonly [key: string]: string }
  /** Requests per second, over all endpoints. */
  readonly rateLimit: number | null
  readonly createdAt: number
  readonly updatedAt: number
}

/** Excludes applications by their endpoints; deleted endpoints do not count. */
export interface ApplicationFilter {
  readonly excludeWithoutEndpoints?: boolean | undefined
  /** Applications whose endpoints are all disabled. */
  readonly excludeAllDisabled?: boolean | undefined
  /** Applications whose endpoints all have a URL with this prefix. */
  readonly excludeAllTo?: string | undefined
  /** Applications with exactly this name. */
  readonly name?: string | undefined
}

export type ApplicationPatch = Partial<Pick<Application, "uid" | "name" | "metadata" | "rateLimit">>

export interface Endpoint {
  readonly id: string
  readonly orgId: string
  readonly appId: string
  readonly uid: string | null
  readonly url: string
  readonly description: string
  readonly eventTypes: readonly string[] | null
  readonly channels: readonly string[] | null
  readonly headers: { readonly [name: string]: string }
  readonly metadata: { readonly [key: string]: string }
  /** `retryName` is a stored policy, `retryPolicy` the policy as JSON; both null: the engine's default. */
  readonly retryName: string | null
  readonly retryPolicy: string | null
  readonly ordered: boolean
  readonly concurrency: number | null
  readonly rateLimit: number | null
  /** Limit of the application; changing it raises the version of its endpoints. */
  readonly appRateLimit: number | null
  readonly disabled: boolean
  /** Since when, and why; null while it is enabled, and for an endpoint that an older version disabled. */
  readonly disabledAt: number | null
  readonly disabledReason: DisableReason | null
  readonly paused: boolean
  /** Since when; null while it is not paused, and for an endpoint that an older version paused. */
  readonly pausedAt: number | null
  /** When a pause or a disabling last ended; null if there was none. */
  readonly resumedAt: number | null
  /** Retry-After: no request starts before this time. */
  readonly holdUntil: number | null
  /** The state of its circuit breaker. */
  readonly protection: Protection
  /** Goes up when `holdUntil` or `protection` is patched: outcomes from before the patch cannot overwrite them. */
  readonly gateEpoch: number
  /** Signing keys, sealed by the caller. */
  readonly secrets: Uint8Array
  /** Goes up with every change that affects requests. */
  readonly version: number
  /** Svix's `version`: a number of the caller's, without an effect. */
  readonly apiVersion: number
  readonly createdAt: number
  readonly updatedAt: number
}

export type EndpointPatch = Partial<
  Pick<
    Endpoint,
    | "uid"
    | "url"
    | "description"
    | "eventTypes"
    | "channels"
    | "headers"
    | "metadata"
    | "retryName"
    | "retryPolicy"
    | "ordered"
    | "concurrency"
    | "rateLimit"
    | "disabled"
    | "paused"
    | "holdUntil"
    | "protection"
    | "secrets"
    | "apiVersion"
  >
>

export interface EndpointFilter {
  readonly orgId?: string | undefined
  readonly appId?: string | undefined
  readonly endpointId?: string | undefined
  /** Endpoints whose gate a Retry-After or the circuit breaker closes beyond this time, or slows down. */
  readonly heldAfter?: number | undefined
  /** Endpoints that may not be healthy: disabled, paused, with a learned state or an agent, or with a failed attempt in this hour or a later one. */
  readonly troubledSince?: number | undefined
  /** Endpoints whose URL has this transport, see `core/transport-kind.ts`. */
  readonly transport?: "relay" | undefined
  /** Endpoints with exactly this URL. */
  readonly url?: string | undefined
  readonly uid?: string | undefined
}

export type Priority = "high" | "normal" | "low"

export interface NewMessage {
  readonly id: string
  readonly orgId: string
  /** The application, by id or uid. */
  readonly app: string
  /** One endpoint by id, regardless of its filters; null for every endpoint that subscribed. */
  readonly to: string | null
  readonly eventType: string
  readonly payload: Bytes
  readonly contentType: string
  readonly eventId: string | null
  readonly channels: readonly string[]
  readonly tags: readonly string[]
  readonly sessionId: string | null
  readonly metadata: { readonly [key: string]: string }
  readonly priority: Priority
  readonly maxAttempts: number | null
  readonly receivedAt: number
  /** On the wall clock: the caller's date, or the end of the delay. */
  readonly deliverAt: number | null
  /** `deliverAt` is the caller's date: the deliveries wait for it by the wall clock. */
  readonly dated: boolean
  /** On the steady clock: when the lanes have to be woken. */
  readonly wakeAt: number
  /** Same key and digest: the first message's response. Same key, another digest: a conflict. */
  readonly idempotency: { readonly key: Uint8Array; readonly digest: Uint8Array } | null
  /** When the payload is removed, delivered or not; null leaves it to retention. */
  readonly payloadUntil: number | null
  /** When the message may be removed if no endpoint subscribed. */
  readonly purgeUnmatchedAt: number
  /** The trace context in which it was created, as `core/traceparent.ts` writes it. */
  readonly traceparent: string | null
  /** The request that a source took in, as `core/inbound-request.ts` writes it; null for other messages. */
  readonly inbound: string | null
}

export interface Accepted {
  readonly messageId: string
  readonly appId: string
  readonly receivedAt: number
  /** On the wall clock; null: immediately. */
  readonly deliverAt: number | null
  /** Number of endpoints that get the message. */
  readonly matched: number
  /** The idempotency key was used before: nothing was written. */
  readonly duplicate: boolean
  /** The lanes to wake; without those whose open session got the delivery. */
  readonly lanes: readonly LaneWake[]
}

export interface LaneWake {
  readonly endpointId: string
  readonly appId: string
  readonly dueAt: number
  /** `transportOf` the endpoint's URL. Left out, the schedule reads it from the store. */
  readonly transport?: string
}

/** A worker's right to send for one lane, until a claim with a higher token is made. */
export interface LaneClaim {
  readonly endpointId: string
  readonly appId: string
  readonly token: number
}

export interface LaneWant {
  readonly limit: number
  /**
   * How many of the deliveries start immediately. The others wait in memory; a crash meanwhile does not count as a stall of theirs.
   * Negative: that many deliveries in hand start first.
   */
  readonly starting: number
  /** Part of the limit that is reserved for retries, so that first attempts do not starve them. */
  readonly retryShare: number
  /** The most retries among them. */
  readonly retries: number
  /** Limit of the places that deliveries in hand take, up to which more are handed over; 0 refuses handoffs. */
  readonly handoffPlaces: number
}

/** A delivery that was claimed for sending, with the data of its request. */
export interface ClaimedDelivery extends LiveDelivery {
  readonly seq: number
  readonly id: string
  readonly messageId: string
  readonly sessionId: string | null
  readonly eventType: string
  /** Null when it was expunged. */
  readonly payload: Bytes | null
  readonly contentType: string
  readonly priority: Priority
  /** An operator asked for the next attempt. */
  readonly manual: boolean
  /** Error of the previous attempt. */
  readonly errorDetail: string | null
  /** Of its message. */
  readonly traceparent: string | null
  /** Of its message. */
  readonly inbound: string | null
}

export interface LaneWork {
  /** Present when the session knew another version. */
  readonly endpoint: Endpoint | null
  /** A closed gate fetches nothing, but for deliveries of a deleted endpoint, which are cancelled. */
  readonly gate: LoadedGate
  readonly deliveries: readonly ClaimedDelivery[]
  /** When the next of the other deliveries is due; null when none wait. */
  readonly nextDueAt: number | null
}

export type AttemptStatus = "succeeded" | "failed" | "unknown"

export interface NewAttempt {
  readonly id: string
  readonly status: AttemptStatus
  /** An operator asked for the attempt. */
  readonly manual: boolean
  readonly attemptNumber: number
  readonly url: string
  readonly responseStatus: number | null
  readonly responseBody: Bytes | null
  readonly responseTruncated: boolean
  readonly error: string | null
  readonly startedAt: number
  readonly durationMs: number
  /** Its phases, as `core/attempt-timing.ts` writes them. */
  readonly timing: string | null
}

export interface Settlement {
  /** As it was claimed: a row that was changed since keeps its status. */
  readonly delivery: ClaimedDelivery
  readonly change: Change
  readonly attempt: NewAttempt | null
  readonly settledAt: number
  /** Change of the lane's gate, if any. */
  readonly gate: GateUpdate | null
}

export interface GivenBack {
  readonly delivery: ClaimedDelivery
  /** A request that a shutdown cut off: logged, not counted. */
  readonly attempt: NewAttempt | null
}

/**
 * `superseded`: somebody else changed or finished the row; the attempt is logged, and counted if the row is finished. `stale`: the claim
 * was lost, or the outcome was written before. `busy`: an open transaction locks the row; nothing was written, and a retry is safe.
 */
export type SettleResult = "applied" | "superseded" | "stale" | "busy"

export interface Delivery {
  readonly seq: number
  readonly id: string
  readonly appId: string
  readonly endpointId: string
  readonly messageId: string
  readonly sessionId: string | null
  readonly eventType: string
  readonly targetUrl: string
  readonly status: DeliveryStatus
  readonly deadReason: DeadReason | null
  readonly attemptCount: number
  readonly maxAttempts: number | null
  readonly priority: Priority
  readonly nextRetryAt: number | null
  readonly lastAttemptedAt: number | null
  readonly receivedAt: number
  readonly deliveredAt: number | null
  readonly errorDetail: string | null
  readonly ageFrom: number | null
  readonly stalls: number
  readonly manual: boolean
  readonly discardedAt: number | null
  readonly deferred: boolean
  readonly dated: boolean
}

export interface Attempt extends Omit<NewAttempt, "responseBody"> {
  readonly seq: number
  readonly responseBody: Uint8Array | null
  readonly deliveryId: string
  readonly endpointId: string
  readonly messageId: string
}

export interface Message
  extends Omit<
    NewMessage,
    | "orgId"
    | "app"
    | "to"
    | "payload"
    | "payloadUntil"
    | "idempotency"
    | "purgeUnmatchedAt"
    | "dated"
    | "wakeAt"
  > {
  readonly seq: number
  readonly appId: string
  /** Null when it was expunged or not read. */
  readonly payload: Uint8Array | null
  readonly expunged: boolean
  readonly matched: number
}

export interface PayloadSize {
  readonly messageId: string
  /** 0 when it was expunged. */
  readonly bytes: number
}

/** A page of a list, by `seq` or by a name. */
export interface Page<C extends string | number = number> {
  readonly limit: number
  readonly order: "ascending" | "descending"
  /** The rows beyond this one; null: from the start of the list. */
  readonly from: C | null
  /** The rows before `from` instead of those after it, still in the list's order. */
  readonly back: boolean
}

/** The rows that a bounded search reads, by number, both inclusive. */
export interface SearchRows {
  readonly least: number
  readonly most: number
  /** At most this number of deliveries wait for the filter's endpoint or application; they are found by their lanes. Null: there may be more. */
  readonly few: number | null
}

/** The filter of a bounded search, and where the search ends. */
export interface Bounded<F> {
  readonly filter: F
  /** The last row that is read, and its time. Null: the search reaches the end of the list. */
  readonly end: { readonly seq: number; readonly at: number } | null
}

/** Filters on the content of messages. */
export interface Content {
  readonly eventTypes?: readonly string[] | undefined
  readonly channel?: string | undefined
  readonly tag?: string | undefined
}

/** From `since` inclusive to `until` exclusive. */
export interface Span {
  readonly since?: number | undefined
  readonly until?: number | undefined
}

/** The span is compared with the time when the message was received. */
export interface DeliveryFilter extends Content, Span {
  readonly orgId?: string | undefined
  readonly appId?: string | undefined
  readonly endpointId?: string | undefined
  readonly messageId?: string | undefined
  readonly status?: DeliveryStatus | undefined
  /** Only unfinished deliveries. */
  readonly live?: boolean | undefined
  readonly deadReason?: DeadReason | undefined
  /** True: dead because somebody called the delivery off (`cancelled`, `expunged`). False: dead for another reason. */
  readonly calledOff?: boolean | undefined
  /** Class of the last response's status, such as 200; 0 without a response. */
  readonly responseClass?: number | undefined
  /** The start of the last error, up to a colon: `HTTP 500`, `timeout`. Empty: no error. */
  readonly cause?: string | undefined
  /** Excludes dead letters that an operator discarded. */
  readonly undiscarded?: boolean | undefined
  /** Excludes first attempts that are due after this time. */
  readonly startableBy?: number | undefined
  /** The same for deliveries that wait for a date of the wall clock; by default `startableBy`. */
  readonly datesBy?: number | undefined
  /** Excludes deliveries of paused and disabled endpoints. */
  readonly endpointSends?: boolean | undefined
  readonly rows?: SearchRows | undefined
}

/** The span is compared with the time when the attempt began. */
export interface AttemptFilter extends Content, Span {
  readonly orgId?: string | undefined
  readonly appId?: string | undefined
  readonly deliveryId?: string | undefined
  readonly endpointId?: string | undefined
  readonly messageId?: string | undefined
  readonly statuses?: readonly AttemptStatus[] | undefined
  readonly responseClass?: number | undefined
  readonly rows?: SearchRows | undefined
}

/** `status` 0: no response. */
export interface StatusCodeCount {
  readonly status: number
  readonly count: number
}

export type AttemptCounts = { readonly [S in AttemptStatus]: number }

export interface MessageFilter extends Content, Span {
  readonly appId: string
  readonly rows?: SearchRows | undefined
}

/** The span is compared with the start of the hour. */
export interface RollupFilter extends Span {
  readonly orgId?: string | undefined
  /** False: without the tenants of Posthorn's own. */
  readonly withShadows?: boolean | undefined
  readonly appId?: string | undefined
  readonly endpointIds?: readonly string[] | undefined
  readonly eventType?: string | undefined
  /** Only rows whose attempts all started at this age of their delivery or later. */
  readonly olderThanMs?: number | undefined
  /** Only rows that may have such an attempt. Rows from before ages were recorded may. */
  readonly maybeOlderThanMs?: number | undefined
}

/** `retries` is the attempt number with 2 for all retries. */
export type RollupDimension = "application" | "endpoint" | "eventType" | "hour" | "attemptNumber" | "retries"

/** Sums of attempts with a known outcome. The first fields are present if the sums are grouped by them. */
export interface RollupSum {
  readonly appId?: string
  readonly endpointId?: string
  readonly eventType?: string
  /** Start of the hour in which the outcome was known. */
  readonly hour?: number
  /** 20 stands for the 20th attempt and all later ones; 0 for deliveries that were given up before their first attempt. */
  readonly attemptNumber?: number
  readonly attempts: number
  readonly succeeded: number
  /** Deliveries that were given up, after their last attempt or without one (`expired`, `error`). Those called off do not count. */
  readonly dead: number
  /** Attempts without an HTTP status. */
  readonly noResponse: number
  /** Bytes of the payloads. */
  readonly bytesOut: number
  /** Bytes of the responses' bodies, as far as they were kept. */
  readonly bytesIn: number
  readonly durationMs: number
  /** Attempts by the buckets of `LATENCY_BOUNDS_MS`, for `percentile`. */
  readonly latencies: readonly number[]
  readonly lastSuccessAt: number | null
}

/** Dead deliveries of an endpoint with the same reason and error. */
export interface DeadGroup {
  readonly appId: string
  readonly endpointId: string
  readonly deadReason: DeadReason
  readonly errorDetail: string | null
  readonly count: number
  /** When the oldest and the newest delivery were received. */
  readonly oldestAt: number
  readonly newestAt: number
}

export interface EndpointGate extends Gate {
  readonly endpointId: string
  readonly url: string
}

export interface EndpointActivity {
  readonly endpointId: string
  /**
   * Since when its oldest delivery waits for a first attempt or a retry: since it was received, or since the later time that the sender
   * gave. Null: nothing waits, or only for such a time.
   */
  readonly oldestWaitingAt: number | null
  /** Null: none in the 90 days for which roll-ups are kept. */
  readonly lastSuccessAt: number | null
}

/** A lane with waiting deliveries. */
export interface LaneStatus {
  readonly endpointId: string
  readonly appId: string
  /** Deliveries before their first attempt. */
  readonly waiting: number
  /** Deliveries that wait for a retry. */
  readonly retrying: number
  /** Fetched deliveries that are not settled. Only the sending process knows how many requests are in flight. */
  readonly sending: number
  /** True: a queue reached the limit of the read, so that more deliveries may wait than were counted. */
  readonly isLowerBound: boolean
  /** When the oldest waiting delivery was received. */
  readonly oldestAt: number
  /** The first delivery of each kind: due or retried (of an ordered lane its head), delayed, dated. */
  readonly first: readonly Waiting[]
}

/**
 * Action of a task on each delivery: `send-now` makes a waiting delivery due; `enable` cancels everything that waits for a disabled endpoint
 * and then enables the endpoint.
 */
export type DeliveryAction = "retry" | "discard" | "cancel" | "send-now" | "enable"
/** Action of a task on each message: `replay` adds a delivery that an endpoint has not got. */
export type MessageAction = "replay" | "expunge"
/** A `report` is created as finished: it keeps a result. */
export type TaskAction = DeliveryAction | MessageAction | "report"
export type TaskStatus = "running" | "finished" | "cancelled"

/** Durable work on many deliveries or messages, chunk by chunk; it continues after a restart. */
export interface Task {
  readonly seq: number
  readonly id: string
  readonly orgId: string
  readonly action: TaskAction
  /** The caller's name for this kind of task. */
  readonly type: string
  /** Messages are filtered by `appId`, `Content` and `Span`; `endpointId` is where they are replayed to. */
  readonly filter: DeliveryFilter
  readonly status: TaskStatus
  /** Data of the caller's, as JSON. */
  readonly data: string | null
  /** How many rows matched the filter at the start, were read, were changed. */
  readonly total: number
  readonly done: number
  readonly changed: number
  readonly cursor: number
  /** Rows with a higher `seq` are newer than the task. */
  readonly upTo: number
  readonly createdAt: number
  readonly updatedAt: number
}

export interface TaskFilter {
  readonly status?: TaskStatus | undefined
  readonly types?: readonly string[] | undefined
}

/** A change of one delivery without an attempt: an operator's, or the end of its endpoint. */
export interface Amendment {
  readonly seq: number
  readonly expectedStatus: DeliveryStatus
  readonly expectedAttemptCount: number
  readonly change: Change | { readonly discardedAt: number }
}

/** A delivery of a message to an endpoint that has none. */
export interface Addition {
  readonly messageId: string
  readonly endpointId: string
  /** An operator asked for the delivery. */
  readonly manual: boolean
}

export interface TaskStep {
  readonly taskId: string
  /** Cursor of the task when the rows were read. Another cursor means that another process made the step. */
  readonly expectedCursor: number
  readonly amendments: readonly Amendment[]
  readonly additions: readonly Addition[]
  /** Messages whose payload is removed. */
  readonly expunged: readonly string[]
  /** How many rows were read for the step. */
  readonly looked: number
  /** The last `seq` read; null finishes the task. */
  readonly cursor: number | null
  readonly at: Moment
}

export interface TaskChanges {
  /** Whether each amendment and addition was made. */
  readonly amended: readonly boolean[]
  readonly added: readonly boolean[]
}

export interface StatusCounts {
  readonly pending: number
  readonly failed: number
  readonly delivered: number
  readonly dead: number
  /** Dead deliveries that somebody called off (`cancelled`, `expunged`). */
  readonly calledOff: number
}

/** Accepted messages of an application. */
export interface Usage {
  readonly appId: string
  readonly messages: number
  /** Sum of the messages' endpoints. */
  readonly destinations: number
}

/** A small document that belongs to a tenant: an event type, a key, an idempotent response. */
export interface Entry {
  readonly kind: EntryKind
  readonly orgId: string
  readonly name: string
  /** Owner within the tenant; null or left out for kinds that are not listed by owner. */
  readonly owner?: string | null
  readonly body: string
  /** 1 for a new entry; goes up by 1 with every change. */
  readonly version: number
  readonly createdAt: number
  readonly updatedAt: number
  /** When retention may remove the entry. */
  readonly expiresAt: number | null
}

export type EntryKind =
  | "event-type"
  | "key"
  | "answer"
  | "lease"
  | "alert"
  | "alert-rule"
  | "alert-silence"
  | "alert-channel"
  | "source"
  | "source-activity"
  | "source-names"
  | "agent"
  | "session"
  | "login-code"
  | "overview"
  | "change"
  | "endpoint-change"

export interface NamedPolicy {
  readonly orgId: string
  readonly name: string
  readonly policy: string
  readonly updatedAt: number
}

/** A process that delivers from the store, or that stopped without ending its lease. */
export interface WorkerStatus {
  readonly id: string
  readonly name: string
  readonly alive: boolean
  /** When the lease ends, by the store's clock; null: the store has no leases. */
  readonly aliveUntil: number | null
  /** Claimed lanes of the tenant, and fetched deliveries that are not settled. */
  readonly lanes: number
  readonly inHand: number
}

/** By the ids of the endpoints that have an agent: since when it is connected; null: it is not. */
export type SurveyedAgents = { readonly [endpointId: string]: number | null }

/** Of all tenants but Posthorn's own. */
export interface Survey {
  readonly deliveries: {
    /** May start now, or is being sent. */
    readonly due: number
    /** Waits for its first attempt at a time that the sender gave. */
    readonly scheduled: number
    /** Waits for its next attempt, or behind such a delivery of an ordered endpoint. */
    readonly retrying: number
    /** Its endpoint is paused, disabled, held by Retry-After or an open breaker, or was deleted. */
    readonly held: number
  }
  /** The delivery that has been due for longest, and since when. Without those of endpoints that fail, and retries that wait for a budget. */
  readonly oldestDue: { readonly at: number; readonly endpointId: string } | null
  /** Dead letters that nobody discarded or called off. `oldestAt`: when the oldest died. */
  readonly deadLetters: readonly {
    readonly reason: DeadReason
    readonly count: number
    readonly oldestAt: number
  }[]
  readonly endpoints: number
  /** Waiting deliveries of the endpoints that were named, without those that have none. */
  readonly waiting: { readonly [endpointId: string]: number }
}

export interface StoreHealth {
  readonly kind: string
  readonly version: string
}

/** The data that goes in and out of a store: plain, and the same for every store. */
import type { Bytes } from "../core/bytes.ts"
import type { Moment } from "../core/clock.ts"
import type { GateUpdate, LoadedGate } from "../core/gate.ts"
import type { DeadReason } from "../core/policy.ts"
import type { Change, DeliveryStatus, LiveDelivery } from "../core/settle.ts"
import type { Gate, Waiting } from "../core/wait.ts"

export interface Application {
  readonly id: string
  /** The tenant: nothing of one can be seen from another. */
  readonly orgId: string
  readonly uid: string | null
  readonly name: string
  readonly metadata: { readonly [key: string]: string }
  /** The most requests in any second, over all its endpoints. */
  readonly rateLimit: number | null
  readonly createdAt: number
  readonly updatedAt: number
}

/** Leaves applications out by their endpoints; deleted endpoints do not count. */
export interface ApplicationFilter {
  readonly excludeWithoutEndpoints?: boolean | undefined
  /** Those that have endpoints, all of them disabled. */
  readonly excludeAllDisabled?: boolean | undefined
  /** Those that have endpoints, all of them with a URL that begins so. */
  readonly excludeAllTo?: string | undefined
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
  /** The name of a policy, a policy of its own as JSON, or null for the engine's default. */
  readonly retryName: string | null
  readonly retryPolicy: string | null
  readonly ordered: boolean
  readonly concurrency: number | null
  readonly rateLimit: number | null
  /** Its application's, read with it; changing that raises the version too. */
  readonly appRateLimit: number | null
  readonly disabled: boolean
  readonly paused: boolean
  /** When it was last paused or disabled no more; null if it never was either. */
  readonly resumedAt: number | null
  /** Retry-After: nothing goes out before this time. */
  readonly holdUntil: number | null
  /** Goes up when `holdUntil` is patched: outcomes from before the patch cannot overwrite it. */
  readonly gateEpoch: number
  /** Its signing keys, sealed by the caller. */
  readonly secrets: Uint8Array
  /** Goes up with every change that an attempt must know of. */
  readonly version: number
  /** Svix's `version`: the caller's own number, without an effect. */
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
    | "secrets"
    | "apiVersion"
  >
>

export interface EndpointFilter {
  readonly orgId?: string | undefined
  readonly appId?: string | undefined
  readonly endpointId?: string | undefined
  /** Those that a Retry-After holds beyond this time. */
  readonly heldAfter?: number | undefined
}

export type Priority = "high" | "normal" | "low"

export interface NewMessage {
  readonly id: string
  readonly orgId: string
  /** The application, by id or uid. */
  readonly app: string
  /** One endpoint by id, whatever it has asked for; null for every endpoint that wants the message. */
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
  /** On the wall clock: the date that the caller gave, or when the delay will have passed. */
  readonly deliverAt: number | null
  /** `deliverAt` is a date that the caller gave: its deliveries wait for it by the wall clock. */
  readonly dated: boolean
  /** On the steady clock: when its lanes have something to do. */
  readonly wakeAt: number
  /** Same key and same digest: the first message's answer. Same key, another digest: a conflict. */
  readonly idempotency: { readonly key: Uint8Array; readonly digest: Uint8Array } | null
  /** When the payload is removed, whatever became of it; null leaves it to retention. */
  readonly payloadUntil: number | null
  /** When a message that no endpoint wanted may be removed. */
  readonly purgeUnmatchedAt: number
}

export interface Accepted {
  readonly messageId: string
  readonly receivedAt: number
  /** By the wall clock; null is at once. */
  readonly deliverAt: number | null
  /** How many endpoints get it. */
  readonly matched: number
  /** True when the idempotency key had been used: nothing new was written. */
  readonly duplicate: boolean
  /** The lanes to wake. A lane whose open session was handed its delivery is not among them. */
  readonly lanes: readonly LaneWake[]
}

export interface LaneWake {
  readonly endpointId: string
  readonly appId: string
  readonly dueAt: number
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
   * How many of them start at once; the others wait in memory, and a crash meanwhile is not counted against them. Negative: that many
   * deliveries in hand start before them.
   */
  readonly starting: number
  /** How many of the limit are kept for retries, so that first attempts do not starve them. */
  readonly retryShare: number
  /** Most places that deliveries in hand may take while more are handed over; 0 refuses handoffs. */
  readonly handoffPlaces: number
}

/** A delivery taken for sending, with what the request needs. */
export interface ClaimedDelivery extends LiveDelivery {
  readonly seq: number
  readonly id: string
  readonly messageId: string
  readonly sessionId: string | null
  readonly eventType: string
  /** Null when it was expunged: there is nothing left to send. */
  readonly payload: Bytes | null
  readonly contentType: string
  readonly priority: Priority
  /** An operator asked for it: its next attempt is not the schedule's. */
  readonly manual: boolean
  /** What the attempt before this one ended with. */
  readonly errorDetail: string | null
}

export interface LaneWork {
  /** Present when its version is not the one that the session knew. */
  readonly endpoint: Endpoint | null
  /** While it is closed, nothing is fetched. Deliveries that still wait for a deleted endpoint are, to be cancelled. */
  readonly gate: LoadedGate
  readonly deliveries: readonly ClaimedDelivery[]
  /** When the lane next has something to do beyond these; null when nothing waits. */
  readonly nextDueAt: number | null
}

export type AttemptStatus = "succeeded" | "failed" | "unknown"

export interface NewAttempt {
  readonly id: string
  readonly status: AttemptStatus
  /** Not the schedule's: an operator asked for it. */
  readonly manual: boolean
  readonly attemptNumber: number
  readonly url: string
  readonly responseStatus: number | null
  readonly responseBody: Bytes | null
  readonly responseTruncated: boolean
  readonly error: string | null
  readonly startedAt: number
  readonly durationMs: number
}

export interface Settlement {
  /** As it was claimed: a row that somebody changed meanwhile keeps its status. */
  readonly delivery: ClaimedDelivery
  readonly change: Change
  readonly attempt: NewAttempt | null
  /** What the outcome changed about the lane's gate, if anything. */
  readonly gate: GateUpdate | null
}

export interface GivenBack {
  readonly delivery: ClaimedDelivery
  /** A request that was cut off: logged, not counted. */
  readonly attempt: NewAttempt | null
}

/**
 * `superseded`: the row was changed or finished by somebody else; its attempt is logged, and counted if it is finished. `stale`: the claim was lost, or this was written before.
 * `busy`: somebody's open transaction holds the row; nothing was written of this one, and it can be tried again.
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
  /** Null when it was expunged, and when it was not asked for. */
  readonly payload: Uint8Array | null
  readonly expunged: boolean
  readonly matched: number
}

/** A page of a list, by `seq` or by a name. */
export interface Page<C extends string | number = number> {
  readonly limit: number
  readonly order: "ascending" | "descending"
  /** Beyond this row; null begins at the beginning. */
  readonly from: C | null
  /** The rows before `from` instead of those after it. They come in the list's order all the same. */
  readonly back: boolean
}

/** What is said of messages, wherever they are filtered. */
export interface Content {
  readonly eventTypes?: readonly string[] | undefined
  readonly channel?: string | undefined
  readonly tag?: string | undefined
}

/** At or after, and before. */
export interface Span {
  readonly since?: number | undefined
  readonly until?: number | undefined
}

/** By when the message was received. */
export interface DeliveryFilter extends Content, Span {
  readonly orgId?: string | undefined
  readonly appId?: string | undefined
  readonly endpointId?: string | undefined
  readonly messageId?: string | undefined
  readonly status?: DeliveryStatus | undefined
  /** Only those that are not finished. */
  readonly live?: boolean | undefined
  readonly deadReason?: DeadReason | undefined
  /** Dead because somebody called them off (`cancelled`, `expunged`), or dead for any other reason. */
  readonly calledOff?: boolean | undefined
  /** The hundreds of the last answer's status; 0 for no answer. */
  readonly responseClass?: number | undefined
  /** Leaves out the dead letters that an operator discarded. */
  readonly undiscarded?: boolean | undefined
  /** Leaves out first attempts that are set for a time after this one. */
  readonly startableBy?: number | undefined
  /** The same for those that wait for a date of the wall clock; `startableBy` if left out. */
  readonly datesBy?: number | undefined
  /** Leaves out the deliveries of paused and disabled endpoints. */
  readonly endpointSends?: boolean | undefined
}

/** By when the attempt began. */
export interface AttemptFilter extends Content, Span {
  readonly orgId?: string | undefined
  readonly appId?: string | undefined
  readonly deliveryId?: string | undefined
  readonly endpointId?: string | undefined
  readonly messageId?: string | undefined
  /** With one of these outcomes. */
  readonly statuses?: readonly AttemptStatus[] | undefined
  readonly responseClass?: number | undefined
}

export type AttemptCounts = { readonly [S in AttemptStatus]: number }

export interface MessageFilter extends Content, Span {
  readonly appId: string
}

/** What an endpoint gave up, by reason and error. */
export interface DeadGroup {
  readonly appId: string
  readonly endpointId: string
  readonly deadReason: DeadReason
  readonly errorDetail: string | null
  readonly count: number
  /** When the oldest and the newest of them were received. */
  readonly oldestAt: number
  readonly newestAt: number
}

export interface EndpointGate extends Gate {
  readonly endpointId: string
}

/** An endpoint's line, while something stands in it. */
export interface LaneStatus {
  readonly endpointId: string
  readonly appId: string
  /** For their first attempt. */
  readonly waiting: number
  /** For another one. */
  readonly retrying: number
  /** How many of either were fetched to be sent at once, and are not settled. The process that sends knows how many are in flight now. */
  readonly sending: number
  /** When the one that waits longest was received. */
  readonly oldestAt: number
  /** The first of each kind: of those that are due or retried (of an ordered lane only its head), delayed, dated. */
  readonly first: readonly Waiting[]
}

/** What a task does with each delivery: `send-now` makes one that waits due at once. */
export type DeliveryAction = "retry" | "discard" | "cancel" | "send-now"
/** What a task does with each message: `replay` adds the deliveries that an endpoint never got. */
export type MessageAction = "replay" | "expunge"
/** A `report` is finished when it is made: it only keeps what was found out. */
export type TaskAction = DeliveryAction | MessageAction | "report"
export type TaskStatus = "running" | "finished" | "cancelled"

/** Durable work on many deliveries or messages: it goes on after a restart, chunk by chunk. */
export interface Task {
  readonly seq: number
  readonly id: string
  readonly orgId: string
  readonly action: TaskAction
  /** What the caller calls it. */
  readonly type: string
  /** Messages are filtered by `appId`, `Content` and `Span`; `endpointId` is where they are replayed to. */
  readonly filter: DeliveryFilter
  readonly status: TaskStatus
  /** What the caller wants to find beside it, as JSON. */
  readonly data: string | null
  /** How many fitted the filter when it began, how many were looked at, how many were changed. */
  readonly total: number
  readonly done: number
  readonly changed: number
  readonly cursor: number
  /** What is above this `seq` came after the task. */
  readonly upTo: number
  readonly createdAt: number
  readonly updatedAt: number
}

export interface TaskFilter {
  readonly status?: TaskStatus | undefined
  /** Of one of these kinds. */
  readonly types?: readonly string[] | undefined
}

/** A change to one delivery that did not come from an attempt: an operator's, or the end of its endpoint. */
export interface Amendment {
  readonly seq: number
  readonly expectedStatus: DeliveryStatus
  readonly expectedAttemptCount: number
  readonly change: Change | { readonly discardedAt: number }
}

/** A delivery of a message that an endpoint has none of. */
export interface Addition {
  readonly messageId: string
  readonly endpointId: string
  /** An operator asked for this one. */
  readonly manual: boolean
}

export interface TaskStep {
  readonly taskId: string
  /** Where the task stood when they were read; a step from anywhere else has been made by somebody else. */
  readonly expectedCursor: number
  readonly amendments: readonly Amendment[]
  readonly additions: readonly Addition[]
  /** Messages whose payload goes. */
  readonly expunged: readonly string[]
  /** How many deliveries or messages were looked at for them. */
  readonly looked: number
  /** The last `seq` looked at; null when none are left, which finishes the task. */
  readonly cursor: number | null
  readonly at: Moment
}

export interface TaskChanges {
  /** For each amendment and each addition, whether it was made. */
  readonly amended: readonly boolean[]
  readonly added: readonly boolean[]
}

export interface StatusCounts {
  readonly pending: number
  readonly failed: number
  readonly delivered: number
  readonly dead: number
  /** How many of the dead were called off (`cancelled`, `expunged`) and not given up. */
  readonly calledOff: number
}

/** What an application sent. */
export interface Usage {
  readonly appId: string
  readonly messages: number
  /** How many endpoints they were for, each message counted with all of its own. */
  readonly destinations: number
}

/** A small document that belongs to a tenant: an event type, a key, the answer to a request. */
export interface Entry {
  readonly kind: EntryKind
  readonly orgId: string
  readonly name: string
  /** Whose it is within the tenant; null or left out where nobody asks for those of one owner. */
  readonly owner?: string | null
  readonly body: string
  /** 1 for a new one, and one more with every change. */
  readonly version: number
  readonly createdAt: number
  readonly updatedAt: number
  /** When it may be removed. */
  readonly expiresAt: number | null
}

export type EntryKind = "event-type" | "key" | "answer"

export interface NamedPolicy {
  readonly orgId: string
  readonly name: string
  readonly policy: string
  readonly updatedAt: number
}

/** A process that delivers from the store, or did until it stopped without a word. */
export interface WorkerStatus {
  readonly id: string
  readonly name: string
  readonly alive: boolean
  /** When its lease ends unless it renews it, by the store's clock; null where no lease is needed. */
  readonly aliveUntil: number | null
  /** The tenant's lanes that it has claimed, and the deliveries that it has fetched from them and not settled. */
  readonly lanes: number
  readonly inHand: number
}

export interface StoreHealth {
  readonly kind: string
  readonly version: string
}

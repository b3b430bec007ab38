/**
 * The system of record. One contract, one conformance suite, SQLite and PostgreSQL side by side.
 *
 * Every method is asynchronous, takes and gives plain data, and holds no transaction across calls. A method that writes has
 * committed and synced when it resolves; one that rejects has written nothing, or (a lost connection) may have: every write can be
 * repeated safely. Times are milliseconds since 1970 on the caller's clock.
 */
import type { DeadReason } from "../core/policy.ts"
import type { Change, DeliveryStatus, LiveDelivery } from "../core/settle.ts"

export interface Application {
  readonly id: string
  readonly uid: string | null
  readonly name: string
  readonly metadata: { readonly [key: string]: string }
  readonly createdAt: number
  readonly updatedAt: number
}

export type ApplicationPatch = Partial<Pick<Application, "uid" | "name" | "metadata">>

export interface Endpoint {
  readonly id: string
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
  readonly disabled: boolean
  readonly paused: boolean
  /** Retry-After: nothing goes out before this time. */
  readonly holdUntil: number | null
  /** Its signing keys, sealed by the caller. */
  readonly secrets: Uint8Array
  /** Goes up with every change that an attempt must know of. */
  readonly version: number
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
  >
>

export type Priority = "high" | "normal" | "low"

export interface NewMessage {
  readonly id: string
  /** The application, by id or uid. */
  readonly app: string
  readonly eventType: string
  readonly payload: Uint8Array
  readonly contentType: string
  readonly eventId: string | null
  readonly channels: readonly string[]
  readonly sessionId: string | null
  readonly metadata: { readonly [key: string]: string }
  readonly priority: Priority
  readonly maxAttempts: number | null
  readonly receivedAt: number
  readonly deliverAt: number | null
  /** Same key and same digest: the first message's answer. Same key, another digest: a conflict. */
  readonly idempotency: { readonly key: Uint8Array; readonly digest: Uint8Array } | null
  /** When a message that no endpoint wanted may be removed. */
  readonly purgeUnmatchedAt: number
}

export interface Accepted {
  readonly messageId: string
  readonly receivedAt: number
  /** How many endpoints get it. */
  readonly matched: number
  /** True when the idempotency key had been used: nothing new was written. */
  readonly duplicate: boolean
  /** The lanes that now have something to do. */
  readonly lanes: readonly LaneWake[]
}

export interface LaneWake {
  readonly endpointId: string
  readonly appId: string
  readonly dueAt: number
}

export interface LaneFetch {
  readonly endpointId: string
  readonly token: number
  readonly limit: number
  /** How many of them are sent at once; the others wait for their turn, and a crash in between is not theirs. */
  readonly starting: number
  /** How many of the limit are kept for retries, so that first attempts do not starve them. */
  readonly retryShare: number
  /** The version that the caller has; a newer one comes with the answer. */
  readonly knownVersion: number | null
  /**
   * What the caller has fetched and not settled. Anything else that the claim has taken was in an answer that got lost, and is given
   * again; a store whose answers cannot get lost need not look.
   */
  readonly inHand: readonly number[]
}

/** A delivery taken for sending, with what the request needs. */
export interface ClaimedDelivery extends LiveDelivery {
  readonly seq: number
  readonly id: string
  readonly messageId: string
  readonly sessionId: string | null
  readonly eventType: string
  readonly payload: Uint8Array
  readonly contentType: string
  /** What the attempt before this one ended with. */
  readonly errorDetail: string | null
}

export interface LaneWork {
  readonly endpointId: string
  /** Present when the caller's version is not the newest. */
  readonly endpoint: Endpoint | null
  /** The claim does not stand any more: somebody else has the lane, and nothing was fetched. */
  readonly lost: boolean
  /** Set when nothing may go out now: held until a time, or until somebody changes the endpoint. */
  readonly held: { readonly until: number | null } | null
  /** The endpoint is gone for good: what is still found waiting for it is to be cancelled. */
  readonly deleted: boolean
  readonly deliveries: readonly ClaimedDelivery[]
  /** When the lane next has something to do beyond these; null when nothing waits. */
  readonly nextDueAt: number | null
}

export type AttemptStatus = "succeeded" | "failed" | "unknown"

export interface NewAttempt {
  readonly id: string
  readonly status: AttemptStatus
  readonly attemptNumber: number
  readonly url: string
  readonly responseStatus: number | null
  readonly responseBody: Uint8Array | null
  readonly responseTruncated: boolean
  readonly error: string | null
  readonly startedAt: number
  readonly durationMs: number
}

/** What was fetched, as the one who settles or gives it back names it. */
export interface Claimed {
  readonly seq: number
  readonly deliveryId: string
  readonly messageId: string
  readonly endpointId: string
  readonly token: number
}

export interface Settlement extends Claimed {
  /** The count that the change was computed from: a row that somebody changed meanwhile is left as it is. */
  readonly expectedAttemptCount: number
  readonly change: Change
  readonly attempt: NewAttempt | null
}

export interface GivenBack extends Claimed {
  /** A request that was cut off: logged, not counted. */
  readonly attempt: NewAttempt | null
}

/**
 * `superseded`: the row was changed or finished by somebody else. `stale`: the claim was lost, or this was written before.
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
  readonly discardedAt: number | null
}

export interface Attempt extends NewAttempt {
  readonly seq: number
  readonly deliveryId: string
  readonly endpointId: string
  readonly messageId: string
}

export interface Message extends Omit<NewMessage, "app" | "idempotency" | "purgeUnmatchedAt"> {
  readonly seq: number
  readonly appId: string
  readonly matched: number
}

/** `before` is the `seq` of the last row of the page before; lists run from the newest to the oldest. */
export interface Page {
  readonly limit: number
  readonly before: number | null
}

export interface DeliveryFilter {
  readonly appId?: string | undefined
  readonly endpointId?: string | undefined
  readonly messageId?: string | undefined
  readonly status?: DeliveryStatus | undefined
  /** Only those that are not finished. */
  readonly live?: boolean | undefined
  readonly deadReason?: DeadReason | undefined
  readonly eventType?: string | undefined
  /** Received at or after, and before. */
  readonly since?: number | undefined
  readonly until?: number | undefined
  /** Leaves out the dead letters that an operator discarded. */
  readonly undiscarded?: boolean | undefined
}

export interface AttemptFilter {
  readonly deliveryId?: string | undefined
  readonly endpointId?: string | undefined
  readonly messageId?: string | undefined
  readonly status?: AttemptStatus | undefined
}

export interface MessageFilter {
  readonly appId: string
  readonly eventType?: string | undefined
}

export type TaskAction = "retry" | "discard" | "cancel"
export type TaskStatus = "running" | "finished" | "cancelled"

/** Durable work on many deliveries: it goes on after a restart, chunk by chunk. */
export interface Task {
  readonly seq: number
  readonly id: string
  readonly action: TaskAction
  readonly filter: DeliveryFilter
  readonly status: TaskStatus
  /** How many fitted the filter when it began, how many were looked at, how many were changed. */
  readonly total: number
  readonly done: number
  readonly changed: number
  readonly cursor: number
  /** Deliveries above this `seq` came after the task. */
  readonly upTo: number
  readonly createdAt: number
  readonly updatedAt: number
}

/** A change to one delivery that did not come from an attempt: an operator's, or the end of its endpoint. */
export interface Amendment {
  readonly seq: number
  readonly expectedStatus: DeliveryStatus
  readonly expectedAttemptCount: number
  readonly change: Change | { readonly discardedAt: number }
}

export interface TaskStep {
  readonly taskId: string
  /** Where the task stood when they were read; a step from anywhere else has been made by somebody else. */
  readonly expectedCursor: number
  readonly amendments: readonly Amendment[]
  /** How many deliveries were looked at for them. */
  readonly looked: number
  /** The last `seq` looked at; null when none are left, which finishes the task. */
  readonly cursor: number | null
  readonly now: number
}

export interface StatusCounts {
  readonly pending: number
  readonly failed: number
  readonly delivered: number
  readonly dead: number
}

export interface NamedPolicy {
  readonly name: string
  readonly policy: string
  readonly updatedAt: number
}

export interface Store {
  createApplication(application: Application): Promise<void>
  /** By id or uid. */
  getApplication(key: string): Promise<Application | null>
  listApplications(limit: number, after: string | null): Promise<Application[]>
  updateApplication(id: string, patch: ApplicationPatch, now: number): Promise<Application>
  /** Its endpoints go with it; the task cancels what waits for them. */
  deleteApplication(id: string, task: Task): Promise<void>

  createEndpoint(endpoint: Endpoint): Promise<void>
  /** By id or uid within the application. */
  getEndpoint(appId: string, key: string): Promise<Endpoint | null>
  listEndpoints(appId: string, limit: number, after: string | null): Promise<Endpoint[]>
  /** Refused with `conflict` when `ifVersion` is given and no longer the newest. */
  updateEndpoint(id: string, patch: EndpointPatch, now: number, ifVersion?: number): Promise<Endpoint>
  deleteEndpoint(id: string, task: Task): Promise<void>

  putPolicy(policy: NamedPolicy): Promise<void>
  getPolicy(name: string): Promise<NamedPolicy | null>
  listPolicies(): Promise<NamedPolicy[]>
  /** Refused with `conflict` while an endpoint uses it. */
  deletePolicy(name: string): Promise<void>

  /**
   * Writes messages and the deliveries for the endpoints that want them, all or none, in call order.
   * The endpoints are those in the store at that moment: one created before the call is never missed.
   * With `tx`, a client of the store's own database, they are written in that client's transaction and exist when it commits.
   */
  accept(messages: readonly NewMessage[], tx?: unknown): Promise<Accepted[]>

  /** A page of lanes that have live deliveries, by endpoint id, with their earliest due time. Reads only. */
  scanLanes(after: string | null, limit: number): Promise<LaneWake[]>
  /**
   * Whether anybody but this store object changed the data since the last call, in a way that woke no lane. A store that many
   * processes share wakes lanes by itself, and says no.
   */
  changedOutside(): Promise<boolean>

  /**
   * Takes due deliveries for sending and writes down, with the token, that they are about to be sent. What an earlier
   * token left there becomes an attempt of unknown outcome. Deliveries under way with this token are not given again.
   */
  fetch(lanes: readonly LaneFetch[], now: number): Promise<LaneWork[]>
  /** Applies changes with their attempts. Only a claim that still stands can settle. */
  settle(settlements: readonly Settlement[]): Promise<SettleResult[]>
  /** Gives back what was fetched and not sent, or cut off by a shutdown: the delivery is as if it had not been fetched. */
  giveBack(claims: readonly GivenBack[]): Promise<void>

  getDelivery(id: string): Promise<Delivery | null>
  listDeliveries(filter: DeliveryFilter, page: Page): Promise<Delivery[]>
  countDeliveries(filter: DeliveryFilter): Promise<number>
  countByStatus(filter: Pick<DeliveryFilter, "appId" | "endpointId">): Promise<StatusCounts>
  listAttempts(filter: AttemptFilter, page: Page): Promise<Attempt[]>
  getMessage(appId: string, id: string): Promise<Message | null>
  listMessages(filter: MessageFilter, page: Page): Promise<Message[]>
  /** Applies what still fits its expectation; says for each whether it did. */
  amend(amendments: readonly Amendment[]): Promise<boolean[]>

  /** `seq` and `upTo` are filled in by the store; `total` was counted before, so that a long count holds up no write. */
  createTask(task: Task): Promise<Task>
  getTask(id: string): Promise<Task | null>
  listTasks(status: TaskStatus | null, page: Page): Promise<Task[]>
  cancelTask(id: string, now: number): Promise<Task>
  /** The next deliveries that a task has to look at, oldest first, after its cursor. */
  readTask(id: string, limit: number): Promise<Delivery[]>
  /** Applies a step with its progress, in one transaction; null when the task is no longer running, or has gone on without us. */
  stepTask(step: TaskStep): Promise<boolean[] | null>

  /** Removes at most `limit` finished deliveries whose time has come, then messages that nothing refers to. */
  purge(now: number, limit: number): Promise<number>
  /** Remembers the fingerprint of the first key; any other is refused with `wrong_encryption_key`. */
  bindEncryptionKey(fingerprint: string): Promise<void>
  /** What the store is; rejects when it cannot be written. */
  check(): Promise<StoreHealth>
  close(): Promise<void>
}

export interface StoreHealth {
  readonly kind: string
  readonly version: string
}

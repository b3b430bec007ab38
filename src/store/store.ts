/**
 * The system of record. One contract, one conformance suite, SQLite and PostgreSQL side by side.
 *
 * Every method is asynchronous, takes and returns plain data, and holds no transaction across calls. A write has committed and synced
 * when it resolves. A write that rejects has changed nothing, or, after a lost connection, may have: every write can be repeated safely.
 * `If…` in a name is a guard. Times are milliseconds since 1970 on the caller's clock.
 */
import type { Moment } from "../core/clock.ts"
import type { LaneStore } from "./lane-store.ts"
import type {
  Accepted,
  Addition,
  Amendment,
  Application,
  ApplicationFilter,
  ApplicationPatch,
  Attempt,
  AttemptCounts,
  AttemptFilter,
  Bounded,
  DeadGroup,
  Delivery,
  DeliveryFilter,
  Endpoint,
  EndpointActivity,
  EndpointFilter,
  EndpointGate,
  EndpointPatch,
  Entry,
  EntryKind,
  LaneStatus,
  Message,
  MessageFilter,
  NamedPolicy,
  NewMessage,
  Page,
  PayloadSize,
  RollupDimension,
  RollupFilter,
  RollupSum,
  Span,
  StatusCodeCount,
  StatusCounts,
  StoreHealth,
  Survey,
  SurveyedAgents,
  Task,
  TaskChanges,
  TaskFilter,
  TaskStep,
  Usage,
  WorkerStatus,
} from "./model.ts"

export type { LaneListener, LaneSession, LaneStore } from "./lane-store.ts"
export type * from "./model.ts"

/** Applications, endpoints, policies and the small documents of a tenant. A missing application or endpoint rejects with `not_found`. */
export interface CatalogueStore {
  /** Rejects with `conflict` when another application of the tenant has the uid; so does an update. */
  createApplication(application: Application): Promise<void>
  /** By id or uid. */
  getApplication(orgId: string, key: string): Promise<Application | null>
  /** Ordered by id. */
  listApplications(orgId: string, page: Page<string>, filter?: ApplicationFilter): Promise<Application[]>
  updateApplication(id: string, patch: ApplicationPatch, now: number): Promise<Application>
  /** Deletes the endpoints, too. The task cancels their waiting deliveries. */
  deleteApplication(id: string, task: Task): Promise<void>

  /** Rejects with `conflict` when another endpoint of the application has the uid; so does an update. */
  createEndpoint(endpoint: Endpoint): Promise<void>
  /** By id or uid within the application. */
  getEndpoint(appId: string, key: string): Promise<Endpoint | null>
  /** By id, deleted or not, in any order. */
  getEndpoints(ids: readonly string[]): Promise<Endpoint[]>
  /** Why deliveries of these endpoints may wait, in any order. */
  getGates(ids: readonly string[]): Promise<EndpointGate[]>
  /** In any order; without endpoints that do not exist. */
  getActivity(ids: readonly string[], now: number): Promise<EndpointActivity[]>
  /** Ordered by id, of an application or of a whole tenant. */
  listEndpoints(of: EndpointFilter, page: Page<string>): Promise<Endpoint[]>
  updateEndpoint(id: string, patch: EndpointPatch, now: number): Promise<Endpoint>
  /** Rejects with `conflict`, and changes nothing, when the endpoint has another version. */
  updateEndpointIfVersion(id: string, patch: EndpointPatch, now: number, version: number): Promise<Endpoint>
  /** With the tasks, in one transaction. Rejects with `conflict`, and changes nothing, when the endpoint is not disabled. */
  enableEndpointIfDisabled(id: string, now: number, tasks: readonly Task[]): Promise<Endpoint>
  /** The task cancels the waiting deliveries. */
  deleteEndpoint(id: string, task: Task): Promise<void>

  /** Creates the policy or replaces it. */
  putPolicy(policy: NamedPolicy): Promise<void>
  getPolicy(orgId: string, name: string): Promise<NamedPolicy | null>
  listPolicies(orgId: string): Promise<NamedPolicy[]>
  /** Rejects with `conflict` while an endpoint uses the policy. */
  deletePolicyIfUnused(orgId: string, name: string): Promise<void>

  /** Rejects with `conflict` unless the stored version is the one before the entry's; version 1 needs no stored entry, or an expired one. */
  saveEntryIfUnchanged(entry: Entry): Promise<void>
  /** Null for an expired entry. Without a tenant, the name alone finds it: for names that are unique by themselves. */
  getEntry(kind: EntryKind, orgId: string | null, name: string, now: number): Promise<Entry | null>
  /** Those of these names that have not expired, of any tenant and in any order: for names that are unique by themselves. */
  getEntries(kind: EntryKind, names: readonly string[], now: number): Promise<Entry[]>
  /** Ordered by name; all entries of the tenant, or those of one owner. */
  listEntries(
    kind: EntryKind,
    orgId: string,
    page: Page<string>,
    now: number,
    owner?: string,
  ): Promise<Entry[]>
  deleteEntry(kind: EntryKind, orgId: string, name: string): Promise<void>
}

/** Messages, deliveries and attempts: written by `acceptMany` and by lane sessions, read and corrected here. */
export interface HistoryStore {
  /**
   * Writes messages and their deliveries, all or none, in call order. Endpoints are matched inside the transaction: an endpoint created
   * before the call is never missed. Rejects with `conflict` for an `eventId` that exists, or an idempotency key of another message.
   * `tx` is a client of the store's own database: the messages exist when its transaction commits.
   */
  acceptMany(messages: readonly NewMessage[], tx?: unknown): Promise<Accepted[]>

  getDelivery(orgId: string, id: string): Promise<Delivery | null>
  listDeliveries(filter: DeliveryFilter, page: Page): Promise<Delivery[]>
  /**
   * Bounds a search for the page: with the filter that it returns, lists, counts and groups read at most `most` rows of the list's index.
   * A span is found by the times in ids. So are the bounds of messages and attempts, but for attempts of no endpoint and no application.
   */
  boundDeliveries(filter: DeliveryFilter, page: Page, most: number): Promise<Bounded<DeliveryFilter>>
  countDeliveries(filter: DeliveryFilter): Promise<number>
  countByStatus(
    filter: Pick<DeliveryFilter, "orgId" | "appId" | "endpointId" | "since" | "until" | "rows">,
  ): Promise<StatusCounts>
  /** The largest groups first. */
  groupDead(filter: DeliveryFilter, limit: number, by?: "error" | "cause"): Promise<DeadGroup[]>
  /**
   * Lanes with waiting deliveries, ordered by endpoint id. With `most`, it reads at most that number of deliveries from each queue of a lane:
   * then the counts may be lower bounds, and deliveries beyond the limit that are scheduled for later do not count for `oldestAt`.
   */
  listLanes(
    filter: Pick<DeliveryFilter, "orgId" | "appId" | "endpointId">,
    page: Page<string>,
    most?: number,
  ): Promise<LaneStatus[]>

  listAttempts(filter: AttemptFilter, page: Page): Promise<Attempt[]>
  boundAttempts(filter: AttemptFilter, page: Page, most: number): Promise<Bounded<AttemptFilter>>
  countAttempts(filter: AttemptFilter): Promise<AttemptCounts>
  /** Of the endpoint's newest attempts, those with a known outcome that began in the span, by status code, the most frequent first. */
  countStatusCodes(of: { readonly endpointId: string } & Span, newest: number): Promise<StatusCodeCount[]>
  getAttempt(messageId: string, id: string): Promise<Attempt | null>
  /**
   * Hourly sums of the attempts that were settled, one for each group that has attempts, in the order of `by`; without a dimension, one for
   * all. A settle counts its attempts in its own transaction, once. Sums outlive their deliveries: retention keeps them for 90 days.
   */
  sumRollups(filter: RollupFilter, by: readonly RollupDimension[]): Promise<RollupSum[]>
  /** Removes the body of the response. */
  expungeAttempt(messageId: string, id: string): Promise<void>

  /** By id or event id. */
  getMessage(appId: string, key: string): Promise<Message | null>
  /** The messages that still exist, in any order. */
  getMessages(ids: readonly string[], withPayload: boolean): Promise<Message[]>
  /** Of the messages that still exist, in any order; without reading the payloads. */
  getPayloadSizes(ids: readonly string[]): Promise<PayloadSize[]>
  /** Without payloads, the newest first. It looks into the 1000 newest applications: an event id is unique within one. */
  findMessages(orgId: string, eventId: string, limit: number): Promise<Message[]>
  listMessages(filter: MessageFilter, page: Page, withPayload: boolean): Promise<Message[]>
  boundMessages(filter: MessageFilter, page: Page, most: number): Promise<Bounded<MessageFilter>>
  countMessages(filter: MessageFilter): Promise<number>
  /** Accepted messages by application; `appIds` null for all applications of the tenant. */
  usage(orgId: string, appIds: readonly string[] | null, span: Span): Promise<Usage[]>
  /** Removes the payload and the request of a source. Deliveries that still wait find nothing to send. */
  expungeMessage(appId: string, id: string): Promise<void>
  /** Adds deliveries; false for each that the endpoint already has, or cannot have. */
  addIfMissing(additions: readonly Addition[], at: Moment): Promise<boolean[]>
  /** Applies changes; false for each whose delivery no longer has the expected status and attempt count. */
  amendIfUnchanged(amendments: readonly Amendment[]): Promise<boolean[]>
}

/** Durable work on many deliveries or messages. */
export interface TaskStore {
  /** The store fills in `seq` and `upTo`. The caller has counted `total`, so that a long count delays no write. */
  createTask(task: Task): Promise<Task>
  getTask(orgId: string, id: string): Promise<Task | null>
  listTasks(orgId: string, page: Page, filter?: TaskFilter): Promise<Task[]>
  /** Of every tenant, the oldest first. */
  listRunningTasks(limit: number): Promise<Task[]>
  /** A task that has ended stays as it is. */
  cancelTask(orgId: string, id: string, now: number): Promise<Task>
  /**
   * The next deliveries for a task, oldest first, after its cursor. A task that cancels everything that waits for an endpoint or an application
   * may get them in any order and regardless of its cursor: cancelled deliveries are no longer among them.
   */
  readTask(id: string, limit: number): Promise<Delivery[]>
  /** The next messages for a task, without their payloads. */
  readTaskMessages(id: string, limit: number): Promise<Message[]>
  /** Applies a step with its progress, in one transaction. Null, and nothing is written, when the task has ended or has another cursor. */
  stepTaskIfCurrent(step: TaskStep): Promise<TaskChanges | null>
}

/** Administration of the store: retention, keys, health, workers. */
export interface AdministrationStore {
  /** Every process that delivers, with its lanes of one tenant. */
  listWorkers(orgId: string): Promise<WorkerStatus[]>

  /** Counts over all tenants but Posthorn's own, and what waits for the endpoints `counted`; deliveries to agents that are not connected are held. It reads every waiting delivery and dead letter, in indexes: not for each request. */
  survey(now: number, agents?: SurveyedAgents, counted?: readonly string[]): Promise<Survey>

  /** Removes at most `limit` rows whose time has come: finished deliveries, messages without deliveries, payloads, entries, roll-ups. */
  purge(now: number, limit: number): Promise<number>
  /** Stores the fingerprint of the first key; any other key rejects with `wrong_encryption_key`. */
  bindEncryptionKey(fingerprint: string): Promise<void>
  /** Kind and version of the database; rejects when it cannot be written. */
  check(): Promise<StoreHealth>
  close(): Promise<void>
}

export interface Store extends LaneStore, CatalogueStore, HistoryStore, TaskStore, AdministrationStore {}

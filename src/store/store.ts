/**
 * The system of record. One contract, one conformance suite, SQLite and PostgreSQL side by side.
 *
 * Every method is asynchronous, takes and gives plain data, and holds no transaction across calls. A method that writes has
 * committed and synced when it resolves; one that rejects has written nothing, or (a lost connection) may have: every write can be
 * repeated safely. Times are milliseconds since 1970 on the caller's clock.
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
  DeadGroup,
  Delivery,
  DeliveryFilter,
  Endpoint,
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
  Span,
  StatusCounts,
  StoreHealth,
  Task,
  TaskChanges,
  TaskFilter,
  TaskStep,
  Usage,
  WorkerStatus,
} from "./model.ts"

export type { LaneListener, LaneSession, LaneStore } from "./lane-store.ts"
export type * from "./model.ts"

/** Applications, endpoints, policies and the small documents of a tenant. */
export interface CatalogueStore {
  createApplication(application: Application): Promise<void>
  /** By id or uid. */
  getApplication(orgId: string, key: string): Promise<Application | null>
  /** By id. */
  listApplications(orgId: string, page: Page<string>, filter?: ApplicationFilter): Promise<Application[]>
  updateApplication(id: string, patch: ApplicationPatch, now: number): Promise<Application>
  /** Its endpoints go with it; the task cancels what waits for them. */
  deleteApplication(id: string, task: Task): Promise<void>

  createEndpoint(endpoint: Endpoint): Promise<void>
  /** By id or uid within the application. */
  getEndpoint(appId: string, key: string): Promise<Endpoint | null>
  /** By id, deleted or not, in any order. */
  getEndpoints(ids: readonly string[]): Promise<Endpoint[]>
  /** What keeps the deliveries of these endpoints from being sent, in any order. */
  getGates(ids: readonly string[]): Promise<EndpointGate[]>
  /** By id, of an application or of all that a tenant has. */
  listEndpoints(of: EndpointFilter, page: Page<string>): Promise<Endpoint[]>
  /** Refused with `conflict` when `ifVersion` is given and no longer the newest. */
  updateEndpoint(id: string, patch: EndpointPatch, now: number, ifVersion?: number): Promise<Endpoint>
  deleteEndpoint(id: string, task: Task): Promise<void>

  putPolicy(policy: NamedPolicy): Promise<void>
  getPolicy(orgId: string, name: string): Promise<NamedPolicy | null>
  listPolicies(orgId: string): Promise<NamedPolicy[]>
  /** Refused with `conflict` while an endpoint uses it. */
  deletePolicy(orgId: string, name: string): Promise<void>

  /** Refused with `conflict` when what is there does not have the version before this one. */
  saveEntry(entry: Entry): Promise<void>
  /** One that has expired is not there. Without a tenant, of whichever has it: for names that are unique by themselves. */
  getEntry(kind: EntryKind, orgId: string | null, name: string, now: number): Promise<Entry | null>
  /** By name; all that the tenant has, or those of one owner. */
  listEntries(
    kind: EntryKind,
    orgId: string,
    page: Page<string>,
    now: number,
    owner?: string,
  ): Promise<Entry[]>
  deleteEntry(kind: EntryKind, orgId: string, name: string): Promise<void>
}

/** Messages, deliveries and attempts: written by `accept` and by lane sessions, read and corrected here. */
export interface HistoryStore {
  /**
   * Writes messages and the deliveries for the endpoints that want them, all or none, in call order.
   * The endpoints are those in the store at that moment: one created before the call is never missed.
   * With `tx`, a client of the store's own database, they are written in that client's transaction and exist when it commits.
   */
  accept(messages: readonly NewMessage[], tx?: unknown): Promise<Accepted[]>

  getDelivery(orgId: string, id: string): Promise<Delivery | null>
  listDeliveries(filter: DeliveryFilter, page: Page): Promise<Delivery[]>
  countDeliveries(filter: DeliveryFilter): Promise<number>
  countByStatus(
    filter: Pick<DeliveryFilter, "orgId" | "appId" | "endpointId" | "since" | "until">,
  ): Promise<StatusCounts>
  /** The largest groups first. */
  groupDead(filter: DeliveryFilter, limit: number): Promise<DeadGroup[]>
  /** By endpoint id; only those where something waits. */
  listLanes(
    filter: Pick<DeliveryFilter, "orgId" | "appId" | "endpointId">,
    page: Page<string>,
  ): Promise<LaneStatus[]>

  listAttempts(filter: AttemptFilter, page: Page): Promise<Attempt[]>
  countAttempts(filter: AttemptFilter): Promise<AttemptCounts>
  getAttempt(messageId: string, id: string): Promise<Attempt | null>
  /** What the receiver answered goes. */
  expungeAttempt(messageId: string, id: string): Promise<void>

  /** By id or event id. */
  getMessage(appId: string, key: string): Promise<Message | null>
  /** Those that are still there, in any order, without their payloads unless they are asked for. */
  getMessages(ids: readonly string[], withPayload: boolean): Promise<Message[]>
  listMessages(filter: MessageFilter, page: Page, withPayload: boolean): Promise<Message[]>
  countMessages(filter: MessageFilter): Promise<number>
  /** What was accepted, for each application that has any; of all of them unless named. */
  usage(orgId: string, appIds: readonly string[] | null, span: Span): Promise<Usage[]>
  /** The payload goes for good; deliveries that still want it find nothing to send. */
  expungeMessage(appId: string, id: string): Promise<void>
  /** Adds what is not there yet; says for each whether it did. */
  add(additions: readonly Addition[], at: Moment): Promise<boolean[]>
  /** Applies what still fits its expectation; says for each whether it did. */
  amend(amendments: readonly Amendment[]): Promise<boolean[]>
}

/** Durable work on many deliveries or messages. */
export interface TaskStore {
  /** `seq` and `upTo` are filled in by the store; `total` was counted before, so that a long count holds up no write. */
  createTask(task: Task): Promise<Task>
  getTask(orgId: string, id: string): Promise<Task | null>
  listTasks(orgId: string, page: Page, filter?: TaskFilter): Promise<Task[]>
  /** Of every tenant, the oldest first. */
  listRunningTasks(limit: number): Promise<Task[]>
  cancelTask(orgId: string, id: string, now: number): Promise<Task>
  /**
   * The next deliveries that a task has to look at, oldest first, after its cursor. To one that cancels all that waits for an endpoint or an
   * application they may come in any order, whatever its cursor: those that it has cancelled are no longer among them.
   */
  readTask(id: string, limit: number): Promise<Delivery[]>
  /** The same for a task over messages; without their payloads. */
  readTaskMessages(id: string, limit: number): Promise<Message[]>
  /** Applies a step with its progress, in one transaction; null when the task is no longer running, or has gone on without us. */
  stepTask(step: TaskStep): Promise<TaskChanges | null>
}

/** Keeping the store: retention, keys, health, workers. */
export interface AdministrationStore {
  /** Every process that delivers, for one tenant's lanes. */
  listWorkers(orgId: string): Promise<WorkerStatus[]>

  /** Removes at most `limit` finished deliveries whose time has come, then messages that nothing refers to, payloads and entries whose time has come. */
  purge(now: number, limit: number): Promise<number>
  /** Remembers the fingerprint of the first key; any other is refused with `wrong_encryption_key`. */
  bindEncryptionKey(fingerprint: string): Promise<void>
  /** What the store is; rejects when it cannot be written. */
  check(): Promise<StoreHealth>
  close(): Promise<void>
}

export interface Store extends LaneStore, CatalogueStore, HistoryStore, TaskStore, AdministrationStore {}

/** What the resources of the front door share. */
import type { Clock } from "../core/clock.ts"
import { notFound, PosthornError } from "../core/errors.ts"
import type { Ids, RandomBytes } from "../core/ids.ts"
import type { Policy } from "../core/policy.ts"
import type { SvixTaskType, TaskType } from "../core/task-types.ts"
import type { Vault } from "../core/vault.ts"
import type { Woken } from "../engine/engine.ts"
import type { EventSink } from "../observe/event-stream.ts"
import type { Application, DeliveryFilter, Endpoint, Store, Task, TaskAction } from "../store/store.ts"
import type { TransportRouter } from "../transport/router.ts"

export interface ResourceContext {
  /** The tenant whose things these are. */
  readonly orgId: string
  readonly store: Store
  readonly clock: Clock
  readonly ids: Ids
  readonly vault: Vault
  readonly randomBytes: RandomBytes
  readonly events: EventSink
  readonly defaultPolicy: Policy
  readonly maxPayloadBytes: number
  /** Says which URLs requests can go to, also in a process that does not deliver. */
  readonly router: TransportRouter
  /** These do nothing in a process that does not deliver: the one that does finds the changes in the store. */
  wake(lanes: readonly Woken[]): void
  endpointChanged(endpointId: string, appId: string): void
  recall(which: { readonly endpointId?: string; readonly appId?: string }): void
  wakeTasks(): void
  /** The numbers of the endpoint's deliveries whose requests are in flight; undefined when another process has its lane, or none. */
  sending(endpointId: string): ReadonlySet<number> | undefined
}

export async function requireApplication(context: ResourceContext, key: string): Promise<Application> {
  const application = typeof key === "string" ? await context.store.getApplication(context.orgId, key) : null
  if (application === null) throw notFound("application", String(key))
  return application
}

export async function requireEndpoint(context: ResourceContext, app: string, key: string): Promise<Endpoint> {
  const application = await requireApplication(context, app)
  const endpoint = typeof key === "string" ? await context.store.getEndpoint(application.id, key) : null
  if (endpoint === null) throw notFound("endpoint", String(key))
  return endpoint
}

/**
 * A request that is run again after a crash makes the same ids: what it made the first time is then there already, and is the answer.
 */
export async function madeOnce<T>(create: () => Promise<T>, find: () => Promise<T | null>): Promise<T> {
  try {
    return await create()
  } catch (error) {
    const before = error instanceof PosthornError && error.code === "conflict" ? await find() : null
    if (before === null) throw error
    return before
  }
}

/** A task over what fits the filter now. */
export async function newTask(
  context: ResourceContext,
  action: TaskAction,
  type: TaskType,
  filter: DeliveryFilter,
): Promise<Task> {
  const { store } = context
  const overMessages = action === "replay" || action === "expunge"
  const total = overMessages
    ? await store.countMessages({ ...filter, appId: filter.appId! })
    : await store.countDeliveries(filter)
  return { ...blankTask(context), action, type, filter, total }
}

/** A task that has nothing left to do: it keeps what was found out. */
export function newReport(context: ResourceContext, type: SvixTaskType, data: object): Task {
  return { ...blankTask(context), action: "report", type, status: "finished", data: JSON.stringify(data) }
}

function blankTask({ ids, orgId, clock }: ResourceContext): Omit<Task, "action" | "type"> {
  const now = clock.now()
  return {
    seq: 0,
    id: ids.make("qtask", now),
    orgId,
    filter: {},
    status: "running",
    data: null,
    total: 0,
    done: 0,
    changed: 0,
    cursor: 0,
    upTo: 0,
    createdAt: now,
    updatedAt: now,
  }
}

/** The store keeps numbers; people get dates. */
export function date(ms: number): Date
export function date(ms: number | null): Date | null
export function date(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms)
}

/** What the resources of the front door share. */
import type { Clock } from "../core/clock.ts"
import { notFound, PosthornError } from "../core/errors.ts"
import type { Ids, RandomBytes } from "../core/ids.ts"
import { refuseUnknown, requireObject, wholeNumber } from "../core/input.ts"
import type { Policy } from "../core/policy.ts"
import type { Vault } from "../core/vault.ts"
import type { Reporter } from "../engine/reporter.ts"
import type {
  Application,
  DeliveryFilter,
  Endpoint,
  LaneWake,
  Page,
  Store,
  Task,
  TaskAction,
} from "../store/store.ts"
import type { Guard } from "../transport/egress/guard.ts"

export interface Core {
  readonly store: Store
  readonly clock: Clock
  readonly ids: Ids
  readonly vault: Vault
  readonly randomBytes: RandomBytes
  readonly reporter: Reporter
  readonly defaultPolicy: Policy
  readonly maxPayloadBytes: number
  readonly guard: Guard
  /** These do nothing in a process that does not deliver: the one that does finds the changes in the store. */
  wake(lanes: readonly LaneWake[]): void
  endpointChanged(endpointId: string, appId: string): void
  recall(which: { readonly endpointId?: string; readonly appId?: string }): void
  wakeTasks(): void
}

/** A page of a list, and where the next one begins; null when this was the last. */
export interface List<T> {
  readonly data: readonly T[]
  readonly cursor: string | null
}

export interface PageInput {
  /** At most 250; 50 unless told. */
  limit?: number
  /** The `cursor` of the page before. */
  cursor?: string | null
}

export async function requireApplication(core: Core, key: string): Promise<Application> {
  const application = typeof key === "string" ? await core.store.getApplication(key) : null
  if (application === null) throw notFound("application", String(key))
  return application
}

export async function requireEndpoint(core: Core, app: string, key: string): Promise<Endpoint> {
  const application = await requireApplication(core, app)
  const endpoint = typeof key === "string" ? await core.store.getEndpoint(application.id, key) : null
  if (endpoint === null) throw notFound("endpoint", String(key))
  return endpoint
}

export function pageLimit(input: PageInput): number {
  requireObject(input, "page")
  return input.limit === undefined ? 50 : wholeNumber(input.limit, "limit", 1, 250)
}

/** For lists that have no filter. */
export function onlyPage(input: PageInput): PageInput {
  requireObject(input, "page")
  refuseUnknown(input, ["limit", "cursor"], "")
  return input
}

/** For lists by `seq`, newest first. */
export function pageOf(input: PageInput): Page {
  const { cursor } = input
  if (cursor === undefined || cursor === null) return { limit: pageLimit(input), before: null }
  if (typeof cursor !== "string" || !/^\d{1,15}$/.test(cursor))
    throw new PosthornError("invalid_input", "cursor must be one that a list returned", { field: "cursor" })
  return { limit: pageLimit(input), before: Number(cursor) }
}

export function listOf<R extends { readonly seq: number }, T>(
  rows: readonly R[],
  limit: number,
  show: (row: R) => T,
): List<T> {
  return { data: rows.map(show), cursor: rows.length < limit ? null : String(rows.at(-1)!.seq) }
}

export function listById<R extends { readonly id: string }, T>(
  rows: readonly R[],
  limit: number,
  show: (row: R) => T,
): List<T> {
  return { data: rows.map(show), cursor: rows.length < limit ? null : rows.at(-1)!.id }
}

/** A task over what fits the filter now. */
export async function newTask(core: Core, action: TaskAction, filter: DeliveryFilter): Promise<Task> {
  const total = await core.store.countDeliveries(filter)
  const now = core.clock.now()
  return {
    seq: 0,
    id: core.ids.make("task", now),
    action,
    filter,
    status: "running",
    total,
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

/** The parts and helpers that all resources of the library share. */
import type { Random } from "../core/backoff.ts"
import type { Clock } from "../core/clock.ts"
import type { Prices } from "../core/cost.ts"
import { hasCode, notFound } from "../core/errors.ts"
import type { Ids, RandomBytes } from "../core/ids.ts"
import type { Policy } from "../core/policy.ts"
import type { Vault } from "../core/vault.ts"
import type { Woken } from "../engine/engine.ts"
import { policyOf } from "../engine/target.ts"
import type { EventSink } from "../observe/event-stream.ts"
import type { Instruments } from "../observe/instruments.ts"
import type { Tracing } from "../observe/tracing.ts"
import type { Presence } from "../relay/presence.ts"
import type { Receiver } from "../sources/receiver.ts"
import type { Application, Delivery, Endpoint, Store } from "../store/store.ts"
import type { TransportRouter } from "../transport/router.ts"

export interface ResourceContext {
  /** The tenant. */
  readonly orgId: string
  readonly store: Store
  readonly clock: Clock
  readonly ids: Ids
  readonly vault: Vault
  readonly random: Random
  readonly randomBytes: RandomBytes
  readonly events: EventSink
  readonly instruments: Instruments
  readonly tracing: Tracing
  readonly defaultPolicy: Policy
  /** Null: costs are in units only. */
  readonly prices: Prices | null
  readonly maxPayloadBytes: number
  /** Checks the URLs of endpoints, also in a process that does not deliver. */
  readonly router: Pick<TransportRouter, "schemes" | "urlProblem">
  /** Takes in the requests to sources, of all tenants. */
  readonly receiver: Receiver
  /** Which agents are connected, in any process. */
  readonly presence: Presence
  /** The next four tell this process's engine, if it delivers, and the other processes. */
  wake(lanes: readonly Woken[]): void
  endpointChanged(endpointId: string, appId: string): void
  recall(which: { readonly endpointId?: string; readonly appId?: string }): void
  wakeTasks(): void
  /** The numbers of the endpoint's deliveries in flight; undefined when this process does not own its lane. */
  sending(endpointId: string): ReadonlySet<number> | undefined
}

export async function requireFound<T>(
  what: string,
  key: unknown,
  read: (key: string) => Promise<T | null>,
): Promise<T> {
  const found = typeof key === "string" ? await read(key) : null
  if (found === null) throw notFound(what, String(key))
  return found
}

export function requireApplication({ store, orgId }: ResourceContext, key: string): Promise<Application> {
  return requireFound("application", key, (id) => store.getApplication(orgId, id))
}

export async function optionalApplicationId(
  context: ResourceContext,
  key?: string,
): Promise<string | undefined> {
  return key === undefined ? undefined : (await requireApplication(context, key)).id
}

export async function requireEndpoint(context: ResourceContext, app: string, key: string): Promise<Endpoint> {
  const { id: appId } = await requireApplication(context, app)
  return requireFound("endpoint", key, (id) => context.store.getEndpoint(appId, id))
}

/** The policy of a delivery; of a deleted endpoint, the default. */
export async function policyFor(
  { store, defaultPolicy }: ResourceContext,
  delivery: Delivery,
): Promise<Policy> {
  const endpoint = await store.getEndpoint(delivery.appId, delivery.endpointId)
  return endpoint === null ? defaultPolicy : policyOf(endpoint, defaultPolicy)
}

/** A request that is repeated after a crash makes the same ids: it then finds the row that it made the first time. */
export async function createOrFind<T>(create: () => Promise<T>, find: () => Promise<T | null>): Promise<T> {
  try {
    return await create()
  } catch (error) {
    const before = hasCode(error, "conflict") ? await find() : null
    if (before === null) throw error
    return before
  }
}

export function date(ms: number): Date
export function date(ms: number | null): Date | null
export function date(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms)
}

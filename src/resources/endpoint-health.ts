/** The health of endpoints, read for a page of them at once. */
import { type AttemptWindow, DAY_HOURS, firstHourOf } from "../core/attempt-window.ts"
import { HEALTH_STATES, type Health, type HealthState, healthOf } from "../core/health.ts"
import { policyOf } from "../engine/target.ts"
import type { Endpoint, Page } from "../store/store.ts"
import { byId, type Listing, listing, type PageInput } from "./paging.ts"
import { someOf } from "./query.ts"
import { optionalApplicationId, type ResourceContext } from "./resource-context.ts"

export interface EndpointHealth {
  readonly endpointId: string
  readonly endpointUid: string | null
  readonly endpointUrl: string
  readonly appId: string
  readonly health: HealthState
  /** Null when it was not recorded, as for `healthy`. */
  readonly since: Date | null
  /** A sentence for an operator. */
  readonly why: string
  /** From hourly sums: the part of the hour before that is within the last 60 minutes is estimated. */
  readonly lastHour: AttemptWindow
  readonly lastDay: AttemptWindow
  /** Attempts in a row without a success. */
  readonly failures: number
  /** Null: none in 90 days. */
  readonly lastSuccessAt: Date | null
  /** Since when the oldest delivery waits that is not scheduled for later. */
  readonly oldestWaitingAt: Date | null
}

export interface HealthQuery extends PageInput {
  /** Of this application; without it, of all. */
  app?: string
  /** One state, or any of several. */
  health?: HealthState | readonly HealthState[]
}

/** How many endpoints are read at once to find those in the wanted states. */
const CHUNK = 250

/** By endpoint id. */
export function listHealth(context: ResourceContext, query: HealthQuery): Listing<EndpointHealth> {
  return listing(query, {
    fields: ["app", "health"],
    by: { ...byId("ep"), key: ({ endpointId }: EndpointHealth) => endpointId },
    read: async ({ app, health }) => {
      const wanted = someOf(health, "health", HEALTH_STATES)
      const { store, orgId, clock } = context
      const appId = await optionalApplicationId(context, app)
      const filter = {
        ...(appId === undefined ? { orgId } : { appId }),
        troubledSince: wanted?.includes("healthy") === false ? firstHourOf(clock.now(), 1) : undefined,
      }
      const read = async (page: Page<string>) =>
        healthOfMany(context, await store.listEndpoints(filter, page))
      return wanted === undefined
        ? read
        : (page) => readMatching(page, read, (one) => wanted.includes(one.health))
    },
    show: (one) => one,
  })
}

/** Reads on until the page is full. */
async function readMatching(
  page: Page<string>,
  read: (page: Page<string>) => Promise<EndpointHealth[]>,
  matches: (one: EndpointHealth) => boolean,
): Promise<EndpointHealth[]> {
  const { limit, back } = page
  const found: EndpointHealth[] = []
  for (let { from } = page; ; ) {
    const chunk = await read({ ...page, limit: CHUNK, from })
    // Going back, the chunk nearest to `from` comes first.
    if (back) found.unshift(...chunk.filter(matches))
    else found.push(...chunk.filter(matches))
    if (found.length >= limit || chunk.length < CHUNK)
      return back ? found.slice(-limit) : found.slice(0, limit)
    from = (back ? chunk[0]! : chunk.at(-1)!).endpointId
  }
}

export type HealthContext = Pick<ResourceContext, "store" | "clock" | "defaultPolicy">

/** By endpoint id; one read, regardless of the number of endpoints. */
export async function readHealth(
  { store, clock, defaultPolicy }: HealthContext,
  endpoints: readonly Endpoint[],
): Promise<ReadonlyMap<string, Health>> {
  if (endpoints.length === 0) return new Map()
  const now = clock.now()
  const filter = { endpointIds: endpoints.map(({ id }) => id), since: firstHourOf(now, DAY_HOURS) }
  const sums = await store.sumRollups(filter, ["endpoint", "hour"])
  const sumsOf = Map.groupBy(sums, ({ endpointId }) => endpointId!)
  return new Map(
    endpoints.map((endpoint) => {
      const facts = { ...endpoint, policy: policyOf(endpoint, defaultPolicy) }
      const hours = (sumsOf.get(endpoint.id) ?? []).map((sum) => ({ ...sum, hour: sum.hour! }))
      return [endpoint.id, healthOf(facts, hours, now)]
    }),
  )
}

/** Two reads, regardless of the number of endpoints. */
export async function healthOfMany(
  context: ResourceContext,
  endpoints: readonly Endpoint[],
): Promise<EndpointHealth[]> {
  if (endpoints.length === 0) return []
  const { store, clock } = context
  const [healthById, activities] = await Promise.all([
    readHealth(context, endpoints),
    store.getActivity(
      endpoints.map(({ id }) => id),
      clock.now(),
    ),
  ])
  const activityOf = new Map(activities.map((one) => [one.endpointId, one]))
  return endpoints.map((endpoint) => {
    const { since, ...health } = healthById.get(endpoint.id)!
    const { lastSuccessAt = null, oldestWaitingAt = null } = activityOf.get(endpoint.id) ?? {}
    return {
      endpointId: endpoint.id,
      endpointUid: endpoint.uid,
      endpointUrl: endpoint.url,
      appId: endpoint.appId,
      ...health,
      since: validDate(since),
      failures: endpoint.protection.failures,
      lastSuccessAt: validDate(lastSuccessAt),
      oldestWaitingAt: validDate(oldestWaitingAt),
    }
  })
}

/** An operator's SQL may have stored any number: one endpoint must not break the list of all. */
function validDate(ms: number | null): Date | null {
  const date = new Date(ms ?? Number.NaN)
  return Number.isNaN(date.getTime()) ? null : date
}

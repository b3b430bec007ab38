/** The health of endpoints, read for a page of them at once. */
import { givenUpAt, heldUntil } from "../core/absent-agent.ts"
import { type AttemptWindow, DAY_HOURS, firstHourOf } from "../core/attempt-window.ts"
import { type AgentAbsence, HEALTH_STATES, type Health, type HealthState, healthOf } from "../core/health.ts"
import { policyOf } from "../engine/target.ts"
import { type EndpointAgents, readAbsences } from "../relay/endpoint-agents.ts"
import type { Endpoint, Page } from "../store/store.ts"
import { countLane } from "./lane-count.ts"
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

/** Of the deliveries in each queue that wait for an absent agent. */
const MOST_COUNTED = 1000
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

export type HealthContext = Pick<ResourceContext, "store" | "clock" | "defaultPolicy" | "presence">

export interface Absent {
  readonly agents: EndpointAgents
  /** Counts their waiting deliveries, with a read for each endpoint. */
  readonly isCounted: boolean
}

/** By endpoint id; one read, and another one if an agent is absent, regardless of the number of endpoints. */
export async function readHealth(
  context: HealthContext,
  endpoints: readonly Endpoint[],
  absent: Absent,
): Promise<ReadonlyMap<string, Health>> {
  if (endpoints.length === 0) return new Map()
  const { store, clock, defaultPolicy } = context
  const now = clock.now()
  const filter = { endpointIds: endpoints.map(({ id }) => id), since: firstHourOf(now, DAY_HOURS) }
  const [sums, absences] = await Promise.all([
    store.sumRollups(filter, ["endpoint", "hour"]),
    readWaiting(context, endpoints, absent),
  ])
  const sumsOf = Map.groupBy(sums, ({ endpointId }) => endpointId!)
  return new Map(
    endpoints.map((endpoint) => {
      const absence = absences.get(endpoint.id) ?? null
      const facts = { ...endpoint, policy: policyOf(endpoint, defaultPolicy), absence }
      const hours = (sumsOf.get(endpoint.id) ?? []).map((sum) => ({ ...sum, hour: sum.hour! }))
      return [endpoint.id, healthOf(facts, hours, now)]
    }),
  )
}

/** What waits for the agents that are absent. */
async function readWaiting(
  { store, clock, defaultPolicy }: HealthContext,
  endpoints: readonly Endpoint[],
  { agents, isCounted }: Absent,
): Promise<ReadonlyMap<string, AgentAbsence>> {
  const absent = endpoints.filter(({ id }) => agents.has(id))
  if (absent.length === 0) return new Map()
  const [activities, counts] = await Promise.all([
    store.getActivity(
      absent.map(({ id }) => id),
      clock.now(),
    ),
    Promise.all(absent.map(({ id }) => (isCounted ? countLane(store, id, MOST_COUNTED) : null))),
  ])
  const oldestAt = new Map(activities.map((one) => [one.endpointId, one.oldestWaitingAt]))
  return new Map(
    absent.map((endpoint, i): [string, AgentAbsence] => {
      const { agent, since, hasOtherKey, lastSeenAt } = agents.get(endpoint.id)!
      const policy = policyOf(endpoint, defaultPolicy)
      const at = givenUpAt(oldestAt.get(endpoint.id) ?? null, policy, heldUntil(endpoint))
      return [endpoint.id, { agent, since, hasOtherKey, lastSeenAt, waiting: counts[i]!, givenUpAt: at }]
    }),
  )
}

/** A few reads, regardless of the number of endpoints, and one for each whose agent is absent. */
export async function healthOfMany(
  context: ResourceContext,
  endpoints: readonly Endpoint[],
): Promise<EndpointHealth[]> {
  if (endpoints.length === 0) return []
  const { store, clock } = context
  const agents = await readAbsences(context, endpoints)
  const [healthById, activities] = await Promise.all([
    readHealth(context, endpoints, { agents, isCounted: true }),
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
export function validDate(ms: number | null): Date | null {
  const date = new Date(ms ?? Number.NaN)
  return Number.isNaN(date.getTime()) ? null : date
}

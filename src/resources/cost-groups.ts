/** Costs by endpoint, application, event type or policy, the most expensive first. */
import { byExpense, type Cost, costOf } from "../core/cost.ts"
import type { HealthState } from "../core/health.ts"
import { PRESETS } from "../core/presets.ts"
import type { Endpoint, RollupFilter, RollupSum } from "../store/store.ts"
import { healthOfMany } from "./endpoint-health.ts"
import type { ResourceContext } from "./resource-context.ts"

export const COST_GROUPINGS = ["endpoint", "application", "eventType", "policy"] as const
export type CostGrouping = (typeof COST_GROUPINGS)[number]

export interface CostGroup extends Cost {
  /**
   * An endpoint's or application's id, an event type, or the policy that endpoints have now: a name, or `own`. Null: the policy of
   * endpoints that the store does not have.
   */
  readonly key: string | null
  /** The uid of an endpoint or application, else an endpoint's URL or an application's name. Null if there is none. */
  readonly name: string | null
  /** With `failing`: the endpoint's health now, and why. */
  readonly health: HealthState | null
  readonly why: string | null
}

type Group = Cost & Pick<CostGroup, "key">

/** How many endpoints are read at once. */
const CHUNK = 250
const FAILING: readonly HealthState[] = ["degraded", "failing", "open", "offline", "disabled"]

export async function groupsOf(
  context: ResourceContext,
  filter: RollupFilter,
  by: CostGrouping,
): Promise<Group[]> {
  const dimension = by === "policy" ? "endpoint" : by
  const sums = await context.store.sumRollups(filter, [dimension, "retries"])
  const keyOf = by === "policy" ? await policyNames(context, sums) : KEYS[by]
  return [...Map.groupBy(sums, keyOf)]
    .map(([key, ofKey]) => ({ key, ...costOf(ofKey, context.prices) }))
    .sort(byExpense)
}

const KEYS: { readonly [by in Exclude<CostGrouping, "policy">]: (sum: RollupSum) => string } = {
  endpoint: ({ endpointId }) => endpointId!,
  application: ({ appId }) => appId!,
  eventType: ({ eventType }) => eventType!,
}

/** By the policies that the endpoints have now: the sums do not say which policy an attempt was made under. */
async function policyNames(
  context: ResourceContext,
  sums: readonly RollupSum[],
): Promise<(sum: RollupSum) => string | null> {
  const names = new Map<string, string>()
  const ids = [...new Set(sums.map(KEYS.endpoint))]
  const fallback = Object.entries(PRESETS).find(([, policy]) => policy === context.defaultPolicy)?.[0]
  for await (const { id, retryName, retryPolicy } of endpointsOf(context, ids))
    names.set(id, retryName ?? (retryPolicy === null ? (fallback ?? "default") : "own"))
  return ({ endpointId }) => names.get(endpointId!) ?? null
}

async function* endpointsOf({ store }: ResourceContext, ids: readonly string[]): AsyncGenerator<Endpoint> {
  for (let at = 0; at < ids.length; at += CHUNK) yield* await store.getEndpoints(ids.slice(at, at + CHUNK))
}

export async function nameGroups(
  { store, orgId }: ResourceContext,
  groups: readonly Group[],
  by: CostGrouping,
): Promise<CostGroup[]> {
  const names = new Map<string | null, string | null>()
  if (by === "endpoint")
    for (const { id, uid, url } of await store.getEndpoints(groups.map(({ key }) => key!)))
      names.set(id, uid ?? url)
  if (by === "application") {
    const found = await Promise.all(groups.map(({ key }) => store.getApplication(orgId, key!)))
    for (const one of found) if (one !== null) names.set(one.id, one.uid ?? one.name)
  }
  return groups.map((group) => ({ ...group, name: names.get(group.key) ?? null, health: null, why: null }))
}

/** Of the endpoints with a failed attempt, those that are in trouble now. */
export async function failingGroups(
  context: ResourceContext,
  groups: readonly Group[],
  limit: number,
): Promise<{ readonly groups: CostGroup[]; readonly groupsLeftOut: number }> {
  const { store } = context
  const candidates = groups.filter(({ attempts, delivered }) => attempts > delivered)
  const found: CostGroup[] = []
  for (let at = 0; at < candidates.length; at += CHUNK) {
    const chunk = candidates.slice(at, at + CHUNK)
    const ids = chunk.map(({ key }) => key!)
    const [endpoints, gates] = await Promise.all([store.getEndpoints(ids), store.getGates(ids)])
    const deleted = new Set(gates.filter((gate) => gate.deleted).map(({ endpointId }) => endpointId))
    const healths = await healthOfMany(context, endpoints)
    const troubled = healths.filter((one) => FAILING.includes(one.health) && !deleted.has(one.endpointId))
    const healthOf = new Map(troubled.map((one) => [one.endpointId, one]))
    for (const group of chunk) {
      const one = healthOf.get(group.key!)
      if (one === undefined) continue
      found.push({ ...group, name: one.endpointUid ?? one.endpointUrl, health: one.health, why: one.why })
    }
  }
  return { groups: found.slice(0, limit), groupsLeftOut: Math.max(found.length - limit, 0) }
}

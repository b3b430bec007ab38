/** What retries cost: reports from the hourly sums of attempts, never from deliveries or attempts themselves. */
import { type AttemptYield, type Cost, costOf, type Expense, yieldsOf } from "../core/cost.ts"
import { type WhatIf, whatIf } from "../core/cost-what-if.ts"
import type { RollupFilter } from "../store/store.ts"
import { type CostGroup, type CostGrouping, failingGroups, groupsOf, nameGroups } from "./cost-groups.ts"
import { type CostQuery, type ParsedCostQuery, parseCostQuery } from "./cost-query.ts"
import { optionalApplicationId, type ResourceContext, requireEndpoint } from "./resource-context.ts"

export type { AttemptYield, Cost, CostGroup, CostGrouping, CostQuery, Expense, WhatIf }

export interface CostReport {
  /** The span in whole hours. */
  readonly since: Date
  readonly until: Date
  /** Null without prices. */
  readonly currency: string | null
  readonly total: Cost
  /** The yield of the first attempt, of the second, and so on. */
  readonly byAttempt: AttemptYield[]
  /** With `by` or `failing`, the most expensive first. */
  readonly groups: CostGroup[] | null
  /** Groups beyond the limit. */
  readonly groupsLeftOut: number
  /** With `maxAttempts` or `maxAge`. */
  readonly whatIf: WhatIf | null
}

export class Costs {
  readonly #context: ResourceContext

  constructor(context: ResourceContext) {
    this.#context = context
  }

  /** The cost of the attempts whose outcome was known in a span, 7 days by default. Sums are kept for 90 days. */
  async report(query: CostQuery = {}): Promise<CostReport> {
    const { store, prices, clock } = this.#context
    const parsed = parseCostQuery(query, clock.now())
    const filter = await this.#filterOf(parsed)
    const sums = await store.sumRollups(filter, ["attemptNumber"])
    const { since, until, maxAttempts, maxAge } = parsed
    const hasLimit = maxAttempts !== null || maxAge !== null
    return {
      since: new Date(since),
      until: new Date(until),
      currency: prices?.currency ?? null,
      total: costOf(sums, prices),
      byAttempt: yieldsOf(sums, prices),
      ...(await this.#groups(parsed, filter)),
      whatIf: hasLimit
        ? whatIf({ maxAttempts, maxAge }, sums, await this.#older(parsed, filter), prices)
        : null,
    }
  }

  async #filterOf({ app, endpoint, eventType, since, until }: ParsedCostQuery): Promise<RollupFilter> {
    const span = { eventType, since, until }
    if (app !== undefined && endpoint !== undefined)
      return { ...span, endpointIds: [(await requireEndpoint(this.#context, app, endpoint)).id] }
    const appId = await optionalApplicationId(this.#context, app)
    return { ...span, ...(appId === undefined ? { orgId: this.#context.orgId } : { appId }) }
  }

  async #groups({ by, failing, limit }: ParsedCostQuery, filter: RollupFilter) {
    if (by === null) return { groups: null, groupsLeftOut: 0 }
    const groups = await groupsOf(this.#context, filter, by)
    if (failing) return failingGroups(this.#context, groups, limit)
    return {
      groups: await nameGroups(this.#context, groups.slice(0, limit), by),
      groupsLeftOut: Math.max(groups.length - limit, 0),
    }
  }

  async #older({ maxAge }: ParsedCostQuery, filter: RollupFilter) {
    if (maxAge === null) return null
    const ageMs = Math.round(maxAge * 1000)
    const [atLeast, atMost] = await Promise.all([
      this.#context.store.sumRollups({ ...filter, olderThanMs: ageMs }, ["attemptNumber"]),
      this.#context.store.sumRollups({ ...filter, maybeOlderThanMs: ageMs }, ["attemptNumber"]),
    ])
    return { atLeast, atMost }
  }
}

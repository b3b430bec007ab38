/** A snapshot of the whole store, for metrics and alerts. */
import { agentNameOf } from "../core/agent-url.ts"
import { firstHourOf } from "../core/attempt-window.ts"
import { disablesAt } from "../core/failing.ts"
import { HEALTH_STATES, type HealthState } from "../core/health.ts"
import { isShadow } from "../core/org.ts"
import { policyOf } from "../engine/target.ts"
import { type EndpointAgent, type EndpointAgents, onlyAbsent, readAgents } from "../relay/endpoint-agents.ts"
import { type HealthContext, readHealth } from "../resources/endpoint-health.ts"
import type { Endpoint, Survey } from "../store/store.ts"

/** Of all tenants but Posthorn's own: its notifications cause no alerts, and nobody could clear those of operational webhooks. */
export interface Snapshot extends Omit<Survey, "endpoints"> {
  readonly at: number
  readonly endpoints: { readonly [H in HealthState]: number }
  /** Endpoints that are not healthy: those that are open, failing or offline first, and of these the oldest first; at most 1000. */
  readonly troubled: readonly TroubledEndpoint[]
}

export interface TroubledEndpoint {
  readonly endpointId: string
  readonly appId: string
  readonly orgId: string
  readonly url: string
  /** The NAME of `relay://NAME`; null for other endpoints. */
  readonly agent: string | null
  readonly health: HealthState
  readonly since: number | null
  /** A sentence for an operator. */
  readonly why: string
  /** When the endpoint will be disabled if it goes on failing; null: never. */
  readonly disablesAt: number | null
}

const MOST_TROUBLED = 1000
/** Of the first of the troubled endpoints, the snapshot has the number of waiting deliveries. */
export const MOST_COUNTED = 50
const CHUNK = 250
const BY_URGENCY: readonly HealthState[] = [
  "open",
  "failing",
  "offline",
  "degraded",
  "disabled",
  "paused",
  "healthy",
]

export async function takeSnapshot(context: HealthContext): Promise<Snapshot> {
  const { store, clock } = context
  const at = clock.now()
  const agents = await readAllAgents(context)
  const connected = [...agents].map(([id, { isConnected, since }]) => [id, isConnected ? since : null])
  const counts = Object.fromEntries(HEALTH_STATES.map((state) => [state, 0])) as Record<HealthState, number>
  let troubled: TroubledEndpoint[] = []
  for await (const chunk of troubledEndpoints(context, onlyAbsent(agents), at)) {
    for (const { health } of chunk) counts[health]++
    troubled = mostUrgent([...troubled, ...chunk])
  }
  const counted = troubled.slice(0, MOST_COUNTED).map(({ endpointId }) => endpointId)
  const { endpoints: total, ...survey } = await store.survey(at, Object.fromEntries(connected), counted)
  const others = Object.values(counts).reduce((sum, count) => sum + count)
  const endpoints = { ...counts, healthy: Math.max(0, total - others) }
  return { at, ...survey, endpoints, troubled }
}

/** One read of a partial index if no endpoint has an agent. */
async function readAllAgents(context: HealthContext): Promise<EndpointAgents> {
  const agents = new Map<string, EndpointAgent>()
  for (let from: string | null = null; ; ) {
    const page = { limit: CHUNK, order: "ascending", from, back: false } as const
    const chunk: Endpoint[] = await context.store.listEndpoints({ transport: "relay" }, page)
    for (const [id, agent] of await readAgents(context, chunk)) agents.set(id, agent)
    if (chunk.length < CHUNK) return agents
    from = chunk.at(-1)!.id
  }
}

async function* troubledEndpoints(
  context: HealthContext,
  agents: EndpointAgents,
  now: number,
): AsyncGenerator<TroubledEndpoint[]> {
  const filter = { troubledSince: firstHourOf(now, 1) }
  for (let from: string | null = null; ; ) {
    const page = { limit: CHUNK, order: "ascending", from, back: false } as const
    const chunk: Endpoint[] = await context.store.listEndpoints(filter, page)
    const own = chunk.filter(({ orgId }) => !isShadow(orgId))
    const health = await readHealth(context, own, { agents, isCounted: false })
    yield own
      .map((endpoint) => toTroubled(context, endpoint, health))
      .filter(({ health }) => health !== "healthy")
    if (chunk.length < CHUNK) return
    from = chunk.at(-1)!.id
  }
}

function toTroubled(
  { defaultPolicy }: HealthContext,
  endpoint: Endpoint,
  healthById: Awaited<ReturnType<typeof readHealth>>,
): TroubledEndpoint {
  const { id: endpointId, appId, orgId, url, protection, disabled } = endpoint
  const { health, since, why } = healthById.get(endpointId)!
  const { autoDisable } = policyOf(endpoint, defaultPolicy)
  const at = disabled || !protection.isFailing ? null : disablesAt(protection, autoDisable)
  return { endpointId, appId, orgId, url, agent: agentNameOf(url), health, since, why, disablesAt: at }
}

function mostUrgent(endpoints: readonly TroubledEndpoint[]): TroubledEndpoint[] {
  const urgency = ({ health }: TroubledEndpoint) => BY_URGENCY.indexOf(health)
  return endpoints
    .toSorted((a, b) => urgency(a) - urgency(b) || (a.since ?? 0) - (b.since ?? 0))
    .slice(0, MOST_TROUBLED)
}

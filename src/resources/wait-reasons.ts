/** Adds to deliveries why they wait, and when their next attempt starts. */

import { givenUpAt, heldUntil } from "../core/absent-agent.ts"
import { agentNameOf } from "../core/agent-url.ts"
import { momentOf } from "../core/clock.ts"
import { isLive } from "../core/operate.ts"
import { type AgentAbsent, type Wait, waitOf } from "../core/wait.ts"
import { policyOf } from "../engine/target.ts"
import { readAbsences } from "../relay/endpoint-agents.ts"
import type { Delivery, Endpoint, EndpointGate } from "../store/store.ts"
import type { ResourceContext } from "./resource-context.ts"

/** `wait` is null for a finished delivery. */
export async function withWaits(
  context: ResourceContext,
  deliveries: readonly Delivery[],
): Promise<(Delivery & { readonly wait: Wait | null })[]> {
  const { store, clock, sending } = context
  const ids = new Set(deliveries.filter(isLive).map(({ endpointId }) => endpointId))
  const gates = ids.size === 0 ? [] : await store.getGates([...ids])
  const byEndpoint = new Map(gates.map((gate) => [gate.endpointId, gate]))
  const absences = await readAgentsAbsent(context, gates)
  const at = momentOf(clock)
  return deliveries.map((delivery) => {
    const gate = byEndpoint.get(delivery.endpointId)
    if (!isLive(delivery) || gate === undefined) return { ...delivery, wait: null }
    const isSending = sending(delivery.endpointId)?.has(delivery.seq) ?? false
    return { ...delivery, wait: waitOf(delivery, gate, isSending, at, absences(delivery)) }
  })
}

/** Three reads if one of the endpoints has an agent, else none. */
async function readAgentsAbsent(
  context: ResourceContext,
  gates: readonly EndpointGate[],
): Promise<(delivery: Delivery) => AgentAbsent | null> {
  const ids = gates.filter(({ url }) => agentNameOf(url) !== null).map(({ endpointId }) => endpointId)
  const endpoints = ids.length === 0 ? [] : await context.store.getEndpoints(ids)
  const absences = await readAbsences(context, endpoints)
  const absent = new Map(endpoints.filter(({ id }) => absences.has(id)).map((one) => [one.id, one]))
  return ({ endpointId, ageFrom }) => {
    const endpoint = absent.get(endpointId)
    return endpoint === undefined ? null : agentAbsent(context, endpoint, ageFrom)
  }
}

/** Of a delivery whose age began then. */
export function agentAbsent(
  { defaultPolicy }: Pick<ResourceContext, "defaultPolicy">,
  endpoint: Endpoint,
  ageFrom: number | null,
): AgentAbsent {
  return { givenUpAt: givenUpAt(ageFrom, policyOf(endpoint, defaultPolicy), heldUntil(endpoint)) }
}

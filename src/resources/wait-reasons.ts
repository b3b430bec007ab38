/** Adds to deliveries why they wait, and when their next attempt starts. */
import { momentOf } from "../core/clock.ts"
import { isLive } from "../core/operate.ts"
import { type Wait, waitOf } from "../core/wait.ts"
import type { Delivery } from "../store/store.ts"
import type { ResourceContext } from "./resource-context.ts"

/** `wait` is null for a finished delivery. */
export async function withWaits(
  { store, clock, sending }: ResourceContext,
  deliveries: readonly Delivery[],
): Promise<(Delivery & { readonly wait: Wait | null })[]> {
  const ids = new Set(deliveries.filter(isLive).map(({ endpointId }) => endpointId))
  const gates = ids.size === 0 ? [] : await store.getGates([...ids])
  const byEndpoint = new Map(gates.map((gate) => [gate.endpointId, gate]))
  const at = momentOf(clock)
  return deliveries.map((delivery) => {
    const gate = byEndpoint.get(delivery.endpointId)
    if (!isLive(delivery) || gate === undefined) return { ...delivery, wait: null }
    const isSending = sending(delivery.endpointId)?.has(delivery.seq) ?? false
    return { ...delivery, wait: waitOf(delivery, gate, isSending, at) }
  })
}

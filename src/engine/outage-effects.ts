/** Effects of an outage of our own network beside the guard: the operator is told, and breakers close again. */
import { withoutBreaker } from "../core/breaker.ts"
import { breakerEvent } from "../observe/endpoint-events.ts"
import type { OutageChange } from "../observe/event-stream.ts"
import type { Endpoint } from "../store/store.ts"
import type { EngineParts } from "./engine-parts.ts"
import type { LaneState } from "./lane-state.ts"
import type { EndedOutage } from "./own-outage.ts"

/** Breakers that opened within this time before the outage was noticed did so because of it. */
const OPENED_WITHIN_MS = 60_000

export function outageEvent(
  to: "began" | "ended",
  lanes: Iterable<LaneState>,
  { since, attempts, isAnswered }: EndedOutage,
  at: number,
): OutageChange {
  const hosts = new Set<string>()
  let endpoints = 0
  for (const { target, unansweredSince } of lanes) {
    if (target === null || unansweredSince === null || unansweredSince < since) continue
    endpoints++
    hosts.add(target.host)
  }
  return { type: `engine.outage.${to}`, since, endpoints, hosts: hosts.size, attempts, isAnswered, at }
}

/** A breaker that cannot be closed, because the store fails, is probed when its time comes. */
export async function closeBreakers(
  { store, clock, events, logger }: Pick<EngineParts, "store" | "clock" | "events" | "logger">,
  lanes: Iterable<LaneState>,
  changed: (endpoint: Endpoint) => void,
): Promise<void> {
  const now = clock.now()
  const opened = [...lanes].filter((lane) => openedOfLate(lane, now))
  for (const { target, gate } of opened) {
    const { endpoint } = target!
    const { protection } = gate
    try {
      // With the protection from memory: the settle that opened the breaker may not be written yet, and is refused after this.
      await store.updateEndpoint(endpoint.id, { protection: withoutBreaker(protection) }, now)
      changed(endpoint)
      events.emit(breakerEvent("closed", endpoint, protection, clock.now()))
    } catch (error) {
      logger.warn({ err: error, endpoint_id: endpoint.id }, "A circuit breaker could not be closed")
    }
  }
}

/** A breaker that a receiver opened with its answers stays open. */
function openedOfLate({ target, gate, unansweredSince }: LaneState, now: number): boolean {
  const { phase, since } = gate.protection
  return target !== null && unansweredSince !== null && phase === "open" && since >= now - OPENED_WITHIN_MS
}

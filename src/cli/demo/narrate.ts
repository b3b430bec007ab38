/** Turns the engine's events into lines for people. */

import { printable } from "../../core/text.ts"
import type { Delivery, EventMap, WebhookEvent } from "../../index.ts"
import { EVENTS, RAMP } from "./endpoints.ts"
import type { DemoEvent } from "./engine.ts"
import type { DemoState } from "./state.ts"

export function narrate(state: DemoState, event: DemoEvent): void {
  const who = state.uids.get(event.webhook_id) ?? ""
  if ("message_id" in event) narrateDelivery(state, who, event)
  else narrateBreaker(state, who, event)
}

function narrateBreaker(state: DemoState, who: string, event: EventMap["endpoint.breaker.opened"]): void {
  const { type, at, failures, until } = event
  switch (type) {
    case "endpoint.breaker.opened": {
      const pause = seconds((until ?? at) - at)
      return state.say("bad", who, `breaker opens after ${failures} failures: no request for ${pause}`, at)
    }
    case "endpoint.breaker.half_open":
      return state.say("wait", who, "breaker half-open: one request as a probe", at)
    case "endpoint.breaker.closed":
      return state.say("good", who, `the probe succeeded: the others follow, ${RAMP} a second`, at)
    default:
      return type satisfies never
  }
}

/** One line for each attempt: `delivered` repeats the attempt, and `dead` replaces it. */
function narrateDelivery(state: DemoState, who: string, event: WebhookEvent): void {
  const what = `${eventName(state, event.message_id)} try ${event.attempt_count}`
  switch (event.type) {
    case "delivery.delivered":
      return
    case "delivery.dead": {
      const why = printable(event.last_error ?? "")
      return state.say("bad", who, `${what}  dead, ${event.reason}: ${why}`, event.at)
    }
    case "delivery.attempt": {
      if (event.success) {
        const answer = `${event.response_status} in ${event.duration_ms} ms`
        return state.say("good", who, `${what}  delivered, ${answer}`, event.at)
      }
      if (event.next_retry_at === null) return
      const wait = seconds(event.next_retry_at - event.at)
      return state.say("wait", who, `${what}  ${printable(event.error ?? "")}; again in ${wait}`, event.at)
    }
    default:
      return event satisfies never
  }
}

/** Attempts that the kill cut off have no event: the engine finds them when it starts again. */
export function narrateCutOffs(state: DemoState): void {
  for (const { id, status, endpointId, messageId, attemptNumber } of state.snapshot.attempts) {
    if (status !== "unknown" || state.cutOffs.has(id)) continue
    state.cutOffs.add(id)
    const what = `try ${attemptNumber}  was cut off: sent again, same webhook-id`
    state.say("wait", state.uids.get(endpointId) ?? "", `${eventName(state, messageId)} ${what}`)
  }
}

export function narrateDead(state: DemoState, dead: readonly Delivery[]): void {
  state.say("loud", "", `${dead.length} dead letters, each with its reason; everything else has arrived`)
  for (const { endpointId, messageId, deadReason, attemptCount, errorDetail } of dead.toReversed()) {
    const tries = attemptCount === 1 ? "1 try" : `${attemptCount} tries`
    const why = `${deadReason} after ${tries}: ${printable(errorDetail ?? "")}`
    state.say("bad", state.uids.get(endpointId) ?? "", `${eventName(state, messageId)} ${why}`)
  }
}

const WIDEST = Math.max(...EVENTS.map((name) => name.length))

function eventName(state: DemoState, messageId: string): string {
  const n = state.numbers.get(messageId)
  return n === undefined ? "".padEnd(WIDEST + 3) : `#${n} ${EVENTS[n - 1]!.padEnd(WIDEST)}`
}

export function seconds(ms: number): string {
  return `${(Math.max(0, ms) / 1000).toFixed(1)} s`
}

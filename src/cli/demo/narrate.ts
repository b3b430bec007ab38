/** Turns the engine's events into lines for people. */

import { printable } from "../../core/text.ts"
import type { Delivery, WebhookEvent } from "../../index.ts"
import { EVENTS } from "./endpoints.ts"
import type { DemoState } from "./state.ts"

/** One line for each attempt: `delivered` repeats the attempt, and `dead` replaces it. */
export function narrate(state: DemoState, event: WebhookEvent): void {
  const who = state.uids.get(event.webhook_id) ?? ""
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

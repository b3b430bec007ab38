/** Turns what the engine publishes into lines for people. */

import { printable } from "../../core/text.ts"
import type { Delivery, WebhookEvent } from "../../index.ts"
import { EVENTS } from "./cast.ts"
import type { Show } from "./show.ts"

/** One line for each attempt: `delivered` adds nothing to the attempt, and `dead` says it better. */
export function narrate(show: Show, event: WebhookEvent): void {
  const who = show.uids.get(event.webhook_id) ?? ""
  const what = `${eventName(show, event.message_id)} try ${event.attempt_count}`
  switch (event.type) {
    case "delivery.delivered":
      return
    case "delivery.dead": {
      const why = printable(event.last_error ?? "")
      return show.say("bad", who, `${what}  dead, ${event.reason}: ${why}`, event.at)
    }
    case "delivery.attempt": {
      if (event.success) {
        const answer = `${event.response_status} in ${event.duration_ms} ms`
        return show.say("good", who, `${what}  delivered, ${answer}`, event.at)
      }
      if (event.next_retry_at === null) return
      const wait = seconds(event.next_retry_at - event.at)
      return show.say("wait", who, `${what}  ${printable(event.error ?? "")}; again in ${wait}`, event.at)
    }
    default:
      return event satisfies never
  }
}

/** No event tells of these: nobody was left to publish it. The engine found them when it started again. */
export function narrateCutOffs(show: Show): void {
  for (const { id, status, endpointId, messageId, attemptNumber } of show.books.attempts) {
    if (status !== "unknown" || show.cutOffs.has(id)) continue
    show.cutOffs.add(id)
    const what = `try ${attemptNumber}  was cut off: sent again, same webhook-id`
    show.say("wait", show.uids.get(endpointId) ?? "", `${eventName(show, messageId)} ${what}`)
  }
}

export function narrateDead(show: Show, dead: readonly Delivery[]): void {
  show.say("loud", "", `${dead.length} dead letters, each with its reason; everything else has arrived`)
  for (const { endpointId, messageId, deadReason, attemptCount, errorDetail } of dead.toReversed()) {
    const tries = attemptCount === 1 ? "1 try" : `${attemptCount} tries`
    const why = `${deadReason} after ${tries}: ${printable(errorDetail ?? "")}`
    show.say("bad", show.uids.get(endpointId) ?? "", `${eventName(show, messageId)} ${why}`)
  }
}

const WIDEST = Math.max(...EVENTS.map((name) => name.length))

function eventName(show: Show, messageId: string): string {
  const n = show.numbers.get(messageId)
  return n === undefined ? "".padEnd(WIDEST + 3) : `#${n} ${EVENTS[n - 1]!.padEnd(WIDEST)}`
}

export function seconds(ms: number): string {
  return `${(Math.max(0, ms) / 1000).toFixed(1)} s`
}

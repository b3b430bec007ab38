/** A public event as one line for people. */
import type { PublicEvent } from "../observe/public-events.ts"
import type { Piece } from "./output.ts"
import { time } from "./table.ts"
import { spanText } from "./time-flags.ts"

const TIME_WIDTH = new Date(0).toISOString().length
const KIND_WIDTH = "endpoint.breaker.half_open".length

export function eventLine(event: PublicEvent): Piece[] {
  const { text, mood } = described(event)
  const subject: Piece[] = "webhook_id" in event ? [[event.webhook_id, null]] : []
  if ("agent" in event) subject.push([`relay://${event.agent}`, null])
  if ("message_id" in event) subject.push([event.message_id, null], [event.event_type, null])
  return [[timeText(event.at), null], [event.type.padEnd(KIND_WIDTH), mood], ...subject, [text, null]]
}

/** A server of another version may send an event without a time. */
function timeText(ms: number): string {
  return toDate(ms)?.toISOString() ?? "-".padEnd(TIME_WIDTH)
}

interface Described {
  readonly text: string
  readonly mood: Piece[1]
}

function described(event: PublicEvent): Described {
  switch (event.type) {
    case "delivery.attempt": {
      const { success, attempt_count: count, response_status: status, duration_ms: ms, error } = event
      const answer = status === null ? "no response" : `HTTP ${status}`
      const next = event.next_retry_at === null ? "" : `, again in ${until(event.next_retry_at, event.at)}`
      if (success) return { text: `attempt ${count}: ${answer} in ${ms} ms`, mood: "good" }
      return { text: `attempt ${count}: ${answer} in ${ms} ms${next}${because(error)}`, mood: "bad" }
    }
    case "delivery.delivered":
      return { text: `delivered by attempt ${event.attempt_count}`, mood: "good" }
    case "delivery.dead":
      return {
        text: `dead (${event.reason}) after attempt ${event.attempt_count}${because(event.last_error)}`,
        mood: "bad",
      }
    case "endpoint.breaker.opened":
      return {
        text: `${event.report ? "would open" : `open until ${time(toDate(event.until)) ?? "it is reset"}`}, ${event.failures} failures in a row${because(event.last_error)}`,
        mood: "bad",
      }
    case "endpoint.breaker.half_open":
      return { text: "one request probes the endpoint", mood: "title" }
    case "endpoint.breaker.closed":
      return { text: event.report ? "would close" : "requests go on", mood: "good" }
    case "endpoint.failing": {
      const disabling = event.disables_at === null ? "" : `, disabled at ${time(toDate(event.disables_at))}`
      return {
        text: `${event.failures} failures in a row${disabling}${because(event.last_error)}`,
        mood: "bad",
      }
    }
    case "endpoint.recovered":
      return { text: `works again after ${event.failures} failures`, mood: "good" }
    case "endpoint.disabled":
      return { text: event.reason, mood: "bad" }
    case "engine.outage.began":
      return { text: `no endpoint answers a process: its network seems to be down`, mood: "bad" }
    case "engine.outage.ended":
      return { text: `${event.uncounted_attempts} attempts were not counted`, mood: "good" }
    case "agent.connected":
      return { text: event.version, mood: "good" }
    case "agent.disconnected":
      return { text: `${event.reason}${because(event.detail)}`, mood: "bad" }
    case "gap": {
      const { count, reason } = event
      const missing = count === null ? "events are missing" : `up to ${count} events are missing`
      return { text: `${missing} (${reason})`, mood: "bad" }
    }
    default:
      return { text: JSON.stringify(event satisfies never), mood: null }
  }
}

function because(error: string | null): string {
  return error === null ? "" : `: ${error}`
}

function until(at: number, now: number): string {
  return spanText(Math.max(0, Math.round((at - now) / 1000)))
}

/** Null also for a time that is missing or is none. */
function toDate(ms: number | null): Date | null {
  const date = new Date(ms ?? Number.NaN)
  return Number.isNaN(date.getTime()) ? null : date
}

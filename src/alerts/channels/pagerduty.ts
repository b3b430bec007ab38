/** A notification as an event of PagerDuty's Events API v2: https://developer.pagerduty.com/docs/events-api-v2/trigger-events/ */
import { createHash } from "node:crypto"
import type { Notification } from "../notification.ts"
import type { PagerDutySettings } from "./channel.ts"
import { cut, iso, moreOf, oneLine, titleOf } from "./text.ts"

const SUMMARY = 1024
const DEDUP_KEY = 255
const DETAIL = 4096

/** A group that goes on is triggered again: PagerDuty adds the event to the incident with the same key. */
export function pagerDutyEvent(notification: Notification, settings: PagerDutySettings): object {
  const { kind, groupKey, endedAt } = notification
  const key = { routing_key: settings.routingKey, dedup_key: dedupKey(groupKey) }
  if (kind === "resolved" && endedAt !== null) return { ...key, event_action: "resolve" }
  const { rule, severity, summary, description, startedAt, subjects } = notification
  const more = moreOf(notification)
  return {
    ...key,
    event_action: "trigger",
    payload: {
      summary: cut(`${titleOf(notification)}: ${oneLine(summary)}`, SUMMARY),
      source: settings.source,
      severity,
      timestamp: iso(startedAt),
      component: "posthorn",
      group: cut(oneLine(rule), DEDUP_KEY),
      class: kind,
      custom_details: {
        description: cut(description.toWellFormed(), DETAIL),
        subjects: subjects.map(({ name, since, detail }) => ({
          name: cut(oneLine(name), DETAIL),
          since: iso(since),
          detail: cut(oneLine(detail), DETAIL),
        })),
        ...(more === null ? {} : { more }),
      },
    },
    client: "Posthorn",
  }
}

/** A key that is too long, or has characters that do not survive, is replaced by its hash: two groups never share a key. */
function dedupKey(groupKey: string): string {
  if (groupKey.length <= DEDUP_KEY && /^[\x21-\x7e]+$/.test(groupKey)) return groupKey
  return createHash("sha256").update(groupKey).digest("hex")
}

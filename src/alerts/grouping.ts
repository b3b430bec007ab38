/** Alerts of one rule in one notification. */

import { countText } from "../core/wording.ts"
import type { Alert } from "./alert-state.ts"
import { MOST_SUBJECTS, type Notification, type NotificationSubject, type Severity } from "./notification.ts"
import { definitionOf, type RuleId } from "./rules.ts"

/** A group begins with the first alert of its rule that is notified, and ends when no channel waits for the end of one. */
export interface AlertGroup {
  readonly key: string
  readonly startedAt: number
}

interface Grouped {
  readonly kind: "firing" | "repeated" | "resolved"
  readonly rule: RuleId
  readonly severity: Severity
  readonly group: AlertGroup
  /** At least one. */
  readonly alerts: readonly Alert[]
  /** When the group ended. */
  readonly endedAt: number | null
  /** Alerts that began and ended while the channel's limit withheld them. */
  readonly folded: number
}

const BEGINNINGS = { firing: "", repeated: "Still: ", resolved: "Resolved: " } as const

export function notificationOf({
  kind,
  rule,
  severity,
  group,
  alerts,
  endedAt,
  folded,
}: Grouped): Notification {
  const { title, about } = definitionOf(rule)
  const sorted = alerts.toSorted((a, b) => a.since - b.since || a.subject.localeCompare(b.subject))
  const others = alerts.length - 1
  const more = others === 0 ? "" : ` and ${others} more`
  const withheld =
    folded === 0
      ? ""
      : ` ${countText(folded, "other alert")} began and ended while this channel's hourly limit was reached.`
  return {
    kind,
    rule,
    severity: kind === "resolved" ? "info" : severity,
    summary: `${BEGINNINGS[kind]}${title}: ${sorted[0]!.name}${more}`,
    description: `${kind === "resolved" ? endOf(endedAt) : about}${withheld}`,
    groupKey: group.key,
    startedAt: group.startedAt,
    endedAt,
    ...listSubjects(sorted, folded),
  }
}

const endOf = (endedAt: number | null) =>
  endedAt === null ? "Other alerts of this rule still fire." : "No alert of this rule fires any more."

/** The first ten, and how many more there are. */
function listSubjects(
  subjects: readonly NotificationSubject[],
  folded = 0,
): Pick<Notification, "subjects" | "more"> {
  const shown = subjects.slice(0, MOST_SUBJECTS).map(({ name, since, detail }) => ({ name, since, detail }))
  return { subjects: shown, more: subjects.length - shown.length + folded }
}

/** The neutral form of a notification. Each kind of channel writes it in its own way. */

export const NOTIFICATION_KINDS = ["firing", "resolved", "repeated", "dead_letters", "test"] as const
export type NotificationKind = (typeof NOTIFICATION_KINDS)[number]

/** From the worst. */
export const SEVERITIES = ["critical", "warning", "info"] as const
export type Severity = (typeof SEVERITIES)[number]

/** The most subjects that a notification lists. */
export const MOST_SUBJECTS = 10

export interface NotificationSubject {
  /** For an operator: an endpoint with its URL, or the measured quantity. */
  readonly name: string
  /** Since when the condition holds. */
  readonly since: number
  readonly detail: string
}

export interface Notification {
  readonly kind: NotificationKind
  /** The id of the rule; `dead-letter` for a notice about dead letters, `test` for a test. */
  readonly rule: string
  readonly severity: Severity
  /** One line. */
  readonly summary: string
  readonly description: string
  /** The same for all notifications of an alert group, from its beginning to its end. */
  readonly groupKey: string
  readonly startedAt: number
  /** Of `resolved`: when the group ended; null while other alerts of the group still fire, so that the group goes on. */
  readonly endedAt: number | null
  /** At most `MOST_SUBJECTS`. */
  readonly subjects: readonly NotificationSubject[]
  /** How many subjects are not listed. */
  readonly more: number
}

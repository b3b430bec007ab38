/** The kinds of notification channels, and what can become of an attempt to send one: the labels of its metric. */
export const ALERT_CHANNEL_KINDS = ["webhook", "slack", "pagerduty", "mail"] as const
export type AlertChannelKind = (typeof ALERT_CHANNEL_KINDS)[number]

/** `failed`: another attempt follows. `dead`: none does. */
export const NOTIFICATION_RESULTS = ["delivered", "failed", "dead"] as const
export type NotificationOutcome = (typeof NOTIFICATION_RESULTS)[number]

/** The paths of the pages: the dashboard's at the root, the portal's below `/portal`. */

/** First segments below `/`. */
export const DASHBOARD_PATHS = [
  "endpoints",
  "messages",
  "deliveries",
  "dead-letters",
  "live",
  "alerts",
  "sources",
  "agents",
  "policies",
  "applications",
  "event-types",
  "keys",
  "sessions",
  "workers",
  "changes",
  "settings",
] as const
export type DashboardPath = (typeof DASHBOARD_PATHS)[number]

export const PORTAL_PATH = "/portal"

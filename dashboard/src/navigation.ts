/** The menus of the dashboard and the portal. The key follows `g`. */
import type { DashboardPath } from "../../src/api/page-paths.ts"

export interface MenuItem {
  readonly title: string
  readonly path: string
  readonly key: string
  /** Where the pages of its rows are, if not below its path. */
  readonly rows?: string
}
export interface MenuGroup {
  readonly title: string
  readonly items: readonly MenuItem[]
}

const to = (title: string, path: DashboardPath, key: string): MenuItem => ({ title, path: `/${path}`, key })

export const DASHBOARD_MENU: readonly MenuGroup[] = [
  {
    title: "Deliveries",
    items: [
      { title: "Overview", path: "/", key: "o" },
      to("Endpoints", "endpoints", "e"),
      to("Messages", "messages", "m"),
      to("Deliveries", "deliveries", "d"),
      to("Dead letters", "dead-letters", "x"),
      to("Live", "live", "l"),
      to("Alerts", "alerts", "a"),
    ],
  },
  {
    title: "Incoming",
    items: [to("Sources", "sources", "s"), to("Agents", "agents", "r")],
  },
  {
    title: "Configuration",
    items: [
      to("Applications", "applications", "p"),
      to("Event types", "event-types", "t"),
      to("Policies", "policies", "y"),
      to("Keys", "keys", "k"),
      to("Sessions", "sessions", "i"),
    ],
  },
  {
    title: "Server",
    items: [
      to("Workers and lanes", "workers", "w"),
      to("Changes", "changes", "c"),
      to("Settings", "settings", ","),
    ],
  },
]

export function portalMenu(): readonly MenuGroup[] {
  return [
    {
      title: "Webhooks",
      items: [
        { title: "Endpoints", path: "/portal", key: "e", rows: "/portal/endpoints" },
        { title: "Messages", path: "/portal/messages", key: "m" },
        { title: "Event types", path: "/portal/event-types", key: "t" },
      ],
    },
  ]
}

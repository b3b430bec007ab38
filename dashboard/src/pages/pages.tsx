/** The pages of the dashboard. */
import type { Route } from "../routed.tsx"
import { AgentPage } from "./agent.tsx"
import { Agents } from "./agents.tsx"
import { AlertPage } from "./alert.tsx"
import { AlertChannels } from "./alert-channels.tsx"
import { AlertRules } from "./alert-rules.tsx"
import { AlertSilences } from "./alert-silences.tsx"
import { Alerts } from "./alerts.tsx"
import { ApplicationPage } from "./application.tsx"
import { Applications } from "./applications.tsx"
import { Changes } from "./changes.tsx"
import { DeadLetters } from "./dead-letters.tsx"
import { Deliveries } from "./deliveries.tsx"
import { DeliveryPage } from "./delivery.tsx"
import { EndpointPage } from "./endpoint.tsx"
import { Endpoints } from "./endpoints.tsx"
import { EventTypePage } from "./event-type.tsx"
import { EventTypes } from "./event-types.tsx"
import { Keys } from "./keys.tsx"
import { Live } from "./live.tsx"
import { MessagePage } from "./message.tsx"
import { Messages } from "./messages.tsx"
import { Overview } from "./overview.tsx"
import { Policies } from "./policies.tsx"
import { PolicyPage } from "./policy.tsx"
import { Sessions } from "./sessions.tsx"
import { Settings } from "./settings.tsx"
import { SourcePage } from "./source.tsx"
import { Sources } from "./sources.tsx"
import { TaskPage } from "./task.tsx"
import { Workers } from "./workers.tsx"

export const ROUTES: readonly Route[] = [
  { pattern: "/", title: "Overview", page: Overview },
  { pattern: "/endpoints", title: "Endpoints", page: Endpoints },
  { pattern: "/endpoints/:app/:id", title: "Endpoint", page: EndpointPage },
  { pattern: "/messages", title: "Messages", page: Messages },
  { pattern: "/messages/:app/:id", title: "Message", page: MessagePage },
  { pattern: "/deliveries", title: "Deliveries", page: Deliveries },
  { pattern: "/deliveries/:id", title: "Delivery", page: DeliveryPage },
  { pattern: "/dead-letters", title: "Dead letters", page: DeadLetters },
  { pattern: "/dead-letters/tasks/:id", title: "Task", page: TaskPage },
  { pattern: "/live", title: "Live", page: Live },
  { pattern: "/alerts", title: "Alerts", page: Alerts },
  { pattern: "/alerts/:id", title: "Alert", page: AlertPage },
  { pattern: "/alerts/rules", title: "Alert rules", page: AlertRules },
  { pattern: "/alerts/channels", title: "Alert channels", page: AlertChannels },
  { pattern: "/alerts/silences", title: "Silences", page: AlertSilences },
  { pattern: "/sources", title: "Sources", page: Sources },
  { pattern: "/sources/:app/:id", title: "Source", page: SourcePage },
  { pattern: "/agents", title: "Agents", page: Agents },
  { pattern: "/agents/:app/:name", title: "Agent", page: AgentPage },
  { pattern: "/policies", title: "Policies", page: Policies },
  { pattern: "/policies/:name", title: "Policy", page: PolicyPage },
  { pattern: "/applications", title: "Applications", page: Applications },
  { pattern: "/applications/:id", title: "Application", page: ApplicationPage },
  { pattern: "/event-types", title: "Event types", page: EventTypes },
  { pattern: "/event-types/:name", title: "Event type", page: EventTypePage },
  { pattern: "/keys", title: "Keys", page: Keys },
  { pattern: "/sessions", title: "Sessions", page: Sessions },
  { pattern: "/workers", title: "Workers and lanes", page: Workers },
  { pattern: "/changes", title: "Changes", page: Changes },
  { pattern: "/settings", title: "Settings", page: Settings },
]

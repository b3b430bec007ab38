/** The pages of the portal. They show one application, and share their parts with the dashboard. */
import type { Route } from "../routed.tsx"
import { EventTypePage } from "./event-type.tsx"
import { EventTypes } from "./event-types.tsx"
import { PortalEndpoint, PortalEndpoints } from "./portal-endpoints.tsx"
import { PortalMessage, PortalMessages } from "./portal-messages.tsx"

export const PORTAL_ROUTES: readonly Route[] = [
  { pattern: "/portal", title: "Endpoints", page: PortalEndpoints },
  { pattern: "/portal/endpoints/:id", title: "Endpoint", page: PortalEndpoint },
  { pattern: "/portal/messages", title: "Messages", page: PortalMessages },
  { pattern: "/portal/messages/:id", title: "Message", page: PortalMessage },
  { pattern: "/portal/event-types", title: "Event types", page: EventTypes },
  { pattern: "/portal/event-types/:name", title: "Event type", page: EventTypePage },
]

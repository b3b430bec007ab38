/** Addresses of pages. In the portal the application is known, and its pages are below `/portal`. */
import { page, pathTo, pathWith, type Query } from "./api.ts"

const inPortal = () => page.value === "portal"

export const toApplication = (appId: string) => pathTo("/applications", appId)
export const toEndpoint = (appId: string, id: string) =>
  inPortal() ? pathTo("/portal/endpoints", id) : pathTo("/endpoints", appId, id)
export const toEndpoints = () => (inPortal() ? "/portal" : "/endpoints")
export const toMessage = (appId: string, id: string) =>
  inPortal() ? pathTo("/portal/messages", id) : pathTo("/messages", appId, id)
export const toDelivery = (id: string) => pathTo("/deliveries", id)
export const toEventType = (name: string) =>
  inPortal() ? pathTo("/portal/event-types", name) : pathTo("/event-types", name)
export const toSource = (appId: string, id: string) => pathTo("/sources", appId, id)
export const toAgent = (appId: string, name: string) => pathTo("/agents", appId, name)
export const toAlert = (id: string) => pathTo("/alerts", id)
export const toPolicy = (name: string) => pathTo("/policies", name)
export const toTask = (id: string) => pathTo("/dead-letters/tasks", id)

/** Lists take the filters of the API, under its names: `toDeliveries({ endpoint_id: id, status: "failed" })`. */
export const toMessages = (filters: Query = {}) =>
  pathWith(inPortal() ? "/portal/messages" : "/messages", filters)
export const toDeliveries = (filters: Query = {}) => pathWith("/deliveries", filters)
export const toDeadLetters = (filters: Query = {}) => pathWith("/dead-letters", filters)

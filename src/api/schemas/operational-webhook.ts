/** Schemas of operational endpoints: a subset of an endpoint's fields. */
import { TENANT_WEBHOOK_EVENT_TYPES } from "../../tenant-webhooks/notices.ts"
import { pick, type Static, Type } from "../schema.ts"
import { EndpointIn, EndpointOut } from "./endpoint.ts"

const EventTypes = Type.Optional(
  Type.Nullable(Type.Array(Type.Enum(TENANT_WEBHOOK_EVENT_TYPES), { minItems: 1, uniqueItems: true })),
)
const updatable = {
  ...pick(EndpointIn.properties, ["url", "description", "throttleRate", "rateLimit", "uid", "disabled"]),
  eventTypes: EventTypes,
  filterTypes: EventTypes,
  metadata: EndpointIn.properties.metadata,
}
export const OperationalWebhookEndpointIn = Type.Named(
  "OperationalWebhookEndpointIn",
  Type.Object({ ...updatable, ...pick(EndpointIn.properties, ["secret", "headers"]) }),
)
export const OperationalWebhookEndpointUpdate = Type.Named(
  "OperationalWebhookEndpointUpdate",
  Type.Object(updatable),
)

export const OPERATIONAL_FIELDS = [
  "id",
  "url",
  "description",
  "throttleRate",
  "rateLimit",
  "uid",
  "disabled",
  "eventTypes",
  "filterTypes",
  "metadata",
  "createdAt",
  "updatedAt",
] as const
export const OperationalWebhookEndpointOut = Type.Named(
  "OperationalWebhookEndpointOut",
  Type.Object(pick(EndpointOut.properties, OPERATIONAL_FIELDS)),
)
export type OperationalWebhookEndpointOut = Static<typeof OperationalWebhookEndpointOut>

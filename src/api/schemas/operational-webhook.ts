/** Operational endpoints on the wire: what every endpoint has, less what makes no sense for them. */
import { TENANT_WEBHOOK_EVENT_TYPES } from "../../tenant-webhooks/notices.ts"
import { type Static, Timestamp, Type } from "../schema.ts"
import { EndpointIn, EndpointOut } from "./endpoint.ts"
import { EventTypeNames } from "./fields.ts"

const EventTypes = Type.Optional(
  Type.Nullable(Type.Array(Type.Enum(TENANT_WEBHOOK_EVENT_TYPES), { minItems: 1, uniqueItems: true })),
)
const { url, description, throttleRate, rateLimit, uid, disabled, metadata, secret, headers } =
  EndpointIn.properties

const updatable = {
  url,
  description,
  throttleRate,
  rateLimit,
  uid,
  disabled,
  eventTypes: EventTypes,
  filterTypes: EventTypes,
  metadata,
}
export const OperationalWebhookEndpointIn = Type.Named(
  "OperationalWebhookEndpointIn",
  Type.Object({ ...updatable, secret, headers }),
)
export const OperationalWebhookEndpointUpdate = Type.Named(
  "OperationalWebhookEndpointUpdate",
  Type.Object(updatable),
)

const shown = EndpointOut.properties
export const OperationalWebhookEndpointOut = Type.Named(
  "OperationalWebhookEndpointOut",
  Type.Object({
    id: shown.id,
    url: shown.url,
    description: shown.description,
    throttleRate: shown.throttleRate,
    rateLimit: shown.rateLimit,
    uid: shown.uid,
    disabled: shown.disabled,
    eventTypes: Type.Nullable(EventTypeNames),
    filterTypes: Type.Nullable(EventTypeNames),
    metadata: shown.metadata,
    createdAt: Timestamp,
    updatedAt: Timestamp,
  }),
)
export type OperationalWebhookEndpointOut = Static<typeof OperationalWebhookEndpointOut>

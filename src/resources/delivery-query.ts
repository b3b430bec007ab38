/** Which deliveries a caller means. */
import { invalid } from "../core/errors.ts"
import { isId } from "../core/ids.ts"
import { ifGiven, optionalOneOf, refuseUnknown, requireBoolean, requireObject } from "../core/input.ts"
import { DEAD_REASONS, type DeadReason } from "../core/policy.ts"
import { DELIVERY_STATUSES, type DeliveryStatus } from "../core/settle.ts"
import type { DeliveryFilter } from "../store/store.ts"
import {
  CONTENT_FIELDS,
  type ContentQuery,
  optionalText,
  parseContent,
  RESPONSE_CLASSES,
  type ResponseClass,
} from "./query.ts"
import {
  optionalApplicationId,
  type ResourceContext,
  requireEndpoint,
  requireFound,
} from "./resource-context.ts"

/** The deliveries that match all given fields. `since` and `until` are compared with the time at which the message was received. */
export interface DeliveryQuery extends ContentQuery {
  /** An application, by id or uid. */
  app?: string
  /** An endpoint, by id; or by uid together with `app`. */
  endpoint?: string
  /** A message, by id; or by event id together with `app`. */
  message?: string
  status?: DeliveryStatus
  /** True: only unfinished deliveries, `pending` and `failed`. */
  live?: boolean
  deadReason?: DeadReason
  /** Of the dead: true for `cancelled` and `expunged` ones, false for all others. */
  calledOff?: boolean
  /** The start of the last error, up to a colon: `HTTP 500`, `timeout`; `none` for deliveries without an error. */
  cause?: string
  /** The class of the last response's status: 100 to 500, or 0 for no response. */
  responseClass?: ResponseClass
}

export const DELIVERY_FIELDS = [
  "app",
  "endpoint",
  "message",
  "status",
  "live",
  "deadReason",
  "calledOff",
  "cause",
  "responseClass",
  ...CONTENT_FIELDS,
] as const

export async function parseQuery(context: ResourceContext, query: DeliveryQuery): Promise<DeliveryFilter> {
  requireObject(query, "query")
  refuseUnknown(query, DELIVERY_FIELDS, "")
  return toFilter(context, query)
}

/** Of a tenant, of one of its applications, or of one endpoint. */
export async function endpointFilter(
  context: ResourceContext,
  { app, endpoint }: { readonly app?: string | undefined; readonly endpoint?: string | undefined },
): Promise<Pick<DeliveryFilter, "orgId" | "appId" | "endpointId">> {
  optionalText(app, "app")
  optionalText(endpoint, "endpoint")
  if (app === undefined && endpoint !== undefined && !isId("ep", endpoint))
    throw invalid("endpoint", "must be an endpoint's id: a uid names one only together with its app")
  const appId = await optionalApplicationId(context, app)
  return {
    // An application belongs to its tenant already.
    orgId: app === undefined ? context.orgId : undefined,
    appId,
    endpointId:
      app === undefined || endpoint === undefined
        ? endpoint
        : (await requireEndpoint(context, app, endpoint)).id,
  }
}

/** The caller has refused unknown fields. */
export async function toFilter(context: ResourceContext, query: DeliveryQuery): Promise<DeliveryFilter> {
  const { app, message } = query
  optionalText(message, "message")
  optionalText(query.cause, "cause")
  const filter = await endpointFilter(context, query)
  const { appId } = filter
  if (app === undefined && message !== undefined && !isId("msg", message))
    throw invalid("message", "must be a message's id: an event id names one only together with its app")
  return {
    ...parseContent(query),
    ...filter,
    messageId:
      appId === undefined || message === undefined ? message : await messageIdOf(context, appId, message),
    status: optionalOneOf(query.status, "status", DELIVERY_STATUSES),
    live: ifGiven(query.live, "live", requireBoolean),
    calledOff: ifGiven(query.calledOff, "calledOff", requireBoolean),
    deadReason: optionalOneOf(query.deadReason, "deadReason", DEAD_REASONS),
    cause: query.cause === "none" ? "" : query.cause,
    responseClass: optionalOneOf(query.responseClass, "responseClass", RESPONSE_CLASSES),
  }
}

async function messageIdOf({ store }: ResourceContext, appId: string, key: string): Promise<string> {
  return (await requireFound("message", key, (id) => store.getMessage(appId, id))).id
}

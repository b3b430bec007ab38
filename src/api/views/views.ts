/** Translates the library's objects into the API's. */
import { FAILURE_CAUSES } from "../../core/failure-causes.ts"
import type { HeaderPair, InboundRequest } from "../../core/inbound-request.ts"
import { writePolicy } from "../../core/write-policy.ts"
import type { Application } from "../../resources/applications.ts"
import type { Attempt } from "../../resources/attempts.ts"
import type { Delivery } from "../../resources/deliveries.ts"
import type { Endpoint } from "../../resources/endpoints.ts"
import type { EventType } from "../../resources/event-types.ts"
import type { Message } from "../../resources/messages.ts"
import type { List } from "../../resources/paging.ts"
import type { Task } from "../../resources/tasks.ts"
import { SENSITIVE } from "../endpoint-input.ts"
import { RawJson } from "../raw-json.ts"
import type { ApplicationOut } from "../schemas/application.ts"
import type { DeliveryOut, TaskOut } from "../schemas/delivery.ts"
import type { EndpointOut, MessageEndpointOut } from "../schemas/endpoint.ts"
import type { EventTypeOut } from "../schemas/event-type.ts"
import type { AttemptOut, EndpointMessageOut, InboundRequestOut, MessageOut } from "../schemas/message.ts"
import { attemptNumber, numbered, statusOf } from "./status.ts"

/** From the parameters `with_content` and `expanded_statuses`. */
export interface ViewOptions {
  readonly content: boolean
  readonly expanded: boolean
}

export function listOut<T, O>(list: List<T>, show: (item: T) => O) {
  const { data, cursor, previous, done, searchedTo } = list
  return {
    data: data.map(show),
    iterator: cursor,
    ...(previous === null ? {} : { prevIterator: previous }),
    done,
    ...(searchedTo === undefined ? {} : { searchedTo }),
  }
}

export function applicationOut({ rateLimit, uid, ...application }: Application): ApplicationOut {
  return {
    ...application,
    ...(uid === null ? {} : { uid }),
    throttleRate: rateLimit,
    rateLimit,
  }
}

function endpointFields(endpoint: Endpoint) {
  const { id, url, description, rateLimit, uid, disabled } = endpoint
  const eventTypes = endpoint.eventTypes === null ? null : [...endpoint.eventTypes]
  return {
    id,
    url,
    description,
    throttleRate: rateLimit,
    rateLimit,
    uid,
    version: endpoint.apiVersion,
    disabled,
    eventTypes,
    filterTypes: eventTypes,
    channels: endpoint.channels === null ? null : [...endpoint.channels],
    createdAt: endpoint.createdAt,
    updatedAt: endpoint.updatedAt,
  }
}

export function endpointOut(endpoint: Endpoint): EndpointOut {
  const { metadata, retry, policy, ordered, concurrency, paused, holdUntil, breaker, budget } = endpoint
  return {
    ...endpointFields(endpoint),
    metadata,
    retry,
    policy: writePolicy(policy),
    ordered,
    concurrency,
    paused,
    heldUntil: holdUntil,
    pausedAt: endpoint.pausedAt,
    disabledAt: endpoint.disabledAt,
    disabledReason: endpoint.disabledReason,
    breaker,
    budget,
  }
}

export function messageEndpointOut(
  endpoint: Endpoint,
  delivery: Delivery,
  { expanded }: ViewOptions,
): MessageEndpointOut {
  return { ...endpointFields(endpoint), ...progress(delivery, expanded) }
}

function progress(delivery: Delivery, expanded: boolean) {
  return {
    ...statusOf(delivery, expanded),
    ...(delivery.nextRetryAt === null ? {} : { nextAttempt: delivery.nextRetryAt }),
    ...(delivery.waitReason === null ? {} : { waitReason: delivery.waitReason }),
    deliveryId: delivery.id,
    deliveryStatus: delivery.status,
  }
}

function messageFields(message: Message, content: boolean) {
  const { id, eventType, eventId, channels, tags, deliverAt, receivedAt } = message
  return {
    id,
    eventType,
    ...(eventId === null ? {} : { eventId }),
    payload: content ? payloadOut(message) : {},
    channels: channels.length === 0 ? null : [...channels],
    tags: tags.length === 0 ? null : [...tags],
    timestamp: receivedAt,
    ...(deliverAt === null ? {} : { deliverAt: deliverAt }),
  }
}

export function messageOut(
  message: Message,
  { content, inbound = false }: Pick<ViewOptions, "content"> & { readonly inbound?: boolean },
): MessageOut {
  const { sessionId, metadata, priority, matched } = message
  return {
    ...messageFields(message, content),
    ...(sessionId === null ? {} : { sessionId }),
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
    priority,
    matched,
    ...(content && inbound && message.inbound !== null ? { inbound: inboundOut(message.inbound) } : {}),
  }
}

function inboundOut({ headers, ...request }: InboundRequest): InboundRequestOut {
  const isSensitive = ([name]: HeaderPair) => SENSITIVE.test(name)
  return {
    ...request,
    headers: headers.filter((pair) => !isSensitive(pair)).map((pair) => [...pair]),
    sensitive: headers.filter(isSensitive).map(([name]) => name),
  }
}

export function endpointMessageOut(
  message: Message,
  delivery: Delivery,
  { content, expanded }: ViewOptions,
): EndpointMessageOut {
  return { ...messageFields(message, content), ...progress(delivery, expanded) }
}

/** A payload that is not valid JSON, whatever its content type, is shown as base64. */
function payloadOut({ payload, expunged, contentType }: Message): unknown {
  if (payload === null) return expunged ? { expired: true } : {}
  const bytes = Buffer.from(payload)
  try {
    if (contentType.includes("json")) return rawJson(bytes.toString())
  } catch {}
  return { contentType, base64: bytes.toString("base64") }
}

function rawJson(text: string): RawJson {
  JSON.parse(text)
  return new RawJson(text)
}

export function attemptOut(
  attempt: Attempt,
  { content }: ViewOptions,
  message: Message | null = null,
): AttemptOut {
  const { id, messageId, endpointId, deliveryId, url, responseStatus, durationMs } = attempt
  const body = attempt.responseBody === null ? "" : Buffer.from(attempt.responseBody).toString()
  return {
    id,
    msgId: messageId,
    endpointId,
    deliveryId,
    url,
    response: content ? (responseStatus === null ? (attempt.error ?? "") : body) : "{}",
    // For a complete response the stored error repeats the body, which `with_content=false` must hide.
    error: FAILURE_CAUSES.find((cause) => cause === attempt.error) ?? null,
    responseStatusCode: responseStatus ?? 0,
    responseDurationMs: Math.round(durationMs),
    timing: attempt.timing,
    ...numbered(attemptNumber(attempt.status)),
    triggerType: attempt.manual ? 1 : 0,
    timestamp: attempt.startedAt,
    ...(message === null ? {} : { msg: messageOut(message, { content: false }) }),
  }
}

export function eventTypeOut(type: EventType, content: boolean): EventTypeOut {
  const featureFlags = type.featureFlags === null ? null : [...type.featureFlags]
  return {
    ...type,
    schemas: content ? type.schemas : null,
    featureFlags,
    featureFlag: featureFlags?.[0] ?? null,
  }
}

export function deliveryOut(delivery: Delivery): DeliveryOut {
  const { messageId, targetUrl, errorDetail, nextRetryAt, ...rest } = delivery
  return {
    ...rest,
    msgId: messageId,
    url: targetUrl,
    error: errorDetail,
    nextAttempt: nextRetryAt,
  }
}

/** Svix has no status for cancelled tasks: they are `failed`, with `cancelled` in their data. */
export function taskOut(task: Task): TaskOut {
  const { status, total, done, changed, data } = task
  return {
    ...taskStartedOut(task),
    data: { total, done, changed, ...(status === "cancelled" ? { cancelled: true } : {}), ...data },
  }
}

export function taskStartedOut({ id, status, type, updatedAt }: Task): Omit<TaskOut, "data"> {
  return { id, status: status === "cancelled" ? "failed" : status, task: type, updatedAt }
}

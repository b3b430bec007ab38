/** From an event to the webhook that tells the tenant of it. */
import { isSvixTask } from "../core/task-types.ts"
import type {
  DeliveryEvent,
  DisabledEvent,
  EndpointEvent,
  InternalEvent,
  TaskFinished,
} from "../observe/event-stream.ts"
import type { Store } from "../store/store.ts"

export const TENANT_WEBHOOK_EVENT_TYPES = [
  "endpoint.created",
  "endpoint.updated",
  "endpoint.deleted",
  "endpoint.enabled",
  "endpoint.disabled",
  "message.attempt.failing",
  "message.attempt.exhausted",
  "message.attempt.recovered",
  "background_task.finished",
] as const

export interface Notice {
  readonly type: (typeof TENANT_WEBHOOK_EVENT_TYPES)[number]
  readonly orgId: string
  data(): Promise<object>
  /** Where two processes may see the same event: the same key, so that the tenant is told once. */
  readonly idempotencyKey: string | null
}

/** After this many failed attempts a message is "failing"; if it is delivered after all, it has "recovered". */
const FAILING_ATTEMPTS = 4
const GIVEN_UP = new Set(["exhausted", "expired", "rejected", "gone"])

/** Null: the tenant is not told. Otherwise rejects when the store cannot be read, and resolves with null when the endpoint is gone. */
export function noticeOf(event: InternalEvent, store: Store): Promise<Notice | null> | null {
  switch (event.type) {
    case "delivery.settled":
    case "delivery.answered_late": {
      const type = typeOf(event)
      return type && ofDelivery(type, event, store)
    }
    case "endpoint.created":
    case "endpoint.updated":
    case "endpoint.deleted":
    case "endpoint.enabled":
      return ofEndpoint(event, store)
    case "endpoint.disabled":
      return ofDisabled(event, store)
    case "task.finished":
      return ofTask(event)
    default:
      return null
  }
}

/** Svix's clients cannot read a task of another kind. */
function ofTask({ task }: TaskFinished): Promise<Notice> | null {
  const { id: taskId, orgId, type } = task
  if (!isSvixTask(type)) return null
  const data = async () => ({ taskId, task: type, status: "finished" })
  return Promise.resolve({ type: "background_task.finished", orgId, data, idempotencyKey: null })
}

function typeOf({ type, change, attempt }: DeliveryEvent): Notice["type"] | null {
  const isSettled = type === "delivery.settled"
  if (isSettled && change.status === "dead")
    return GIVEN_UP.has(change.deadReason!) ? "message.attempt.exhausted" : null
  if (attempt?.status === "succeeded")
    return change.attemptCount > FAILING_ATTEMPTS ? "message.attempt.recovered" : null
  const isRetried = isSettled && attempt !== null && change.nextRetryAt !== null
  return isRetried && change.attemptCount === FAILING_ATTEMPTS ? "message.attempt.failing" : null
}

async function ofDelivery(type: Notice["type"], event: DeliveryEvent, store: Store): Promise<Notice | null> {
  const { delivery, appId, endpointId, change, at } = event
  const endpoint = await store.getEndpoint(appId, endpointId)
  if (endpoint === null) return null
  const { orgId } = endpoint
  const data = async () => {
    const page = { limit: 1, order: "descending", from: null, back: false } as const
    const [attempt] = await store.listAttempts({ deliveryId: delivery.id }, page)
    const [message] = await store.getMessages([delivery.messageId], false)
    return {
      ...(await namesOf(store, orgId, appId)),
      msgId: delivery.messageId,
      msgEventId: message?.eventId ?? null,
      endpointId,
      lastAttempt:
        attempt === undefined
          ? null
          : {
              id: attempt.id,
              responseStatusCode: attempt.responseStatus ?? 0,
              timestamp: new Date(attempt.startedAt).toISOString(),
            },
    }
  }
  return { type, orgId, data, idempotencyKey: `${type}:${delivery.id}:${change.attemptCount}:${at}` }
}

async function ofEndpoint({ type, endpoint }: EndpointEvent, store: Store): Promise<Notice> {
  return { type, orgId: endpoint.orgId, data: () => endpointData(endpoint, store), idempotencyKey: null }
}

async function ofDisabled(event: DisabledEvent, store: Store): Promise<Notice | null> {
  const { type, reason, since, at } = event
  const { id, appId, orgId } = event.endpoint
  const isAutomatic = reason !== "manual"
  // The engine knows the endpoint from when the request began; it may have been changed or deleted since.
  const endpoint = isAutomatic ? await store.getEndpoint(appId, id) : event.endpoint
  if (endpoint === null) return null
  const data = async () => ({
    ...(await endpointData(endpoint, store)),
    ...(since === null ? {} : { failSince: new Date(since).toISOString() }),
    trigger: isAutomatic ? "automatic" : "manual",
  })
  return { type, orgId, data, idempotencyKey: isAutomatic ? `${type}:${id}:${at}` : null }
}

async function endpointData(
  { id, uid, appId, orgId }: EndpointEvent["endpoint"],
  store: Store,
): Promise<object> {
  return { ...(await namesOf(store, orgId, appId)), endpointId: id, endpointUid: uid }
}

async function namesOf(store: Store, orgId: string, appId: string): Promise<object> {
  const application = await store.getApplication(orgId, appId)
  return { appId, appUid: application?.uid ?? null }
}

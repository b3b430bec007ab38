/** From an event to the webhook that tells the tenant of it. */
import { isSvixTask } from "../core/task-types.ts"
import type { DeliveryEvent, EndpointEvent, InternalEvent } from "../observe/event-stream.ts"
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
  if ("delivery" in event) {
    const type = typeOf(event)
    return type && ofDelivery(type, event, store)
  }
  if ("trigger" in event) return ofEndpoint(event, store)
  // Svix's clients cannot read a task of another kind.
  if (event.type !== "task.finished" || !isSvixTask(event.task.type)) return null
  const { id: taskId, orgId, type: task } = event.task
  const data = async () => ({ taskId, task, status: "finished" })
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

async function ofEndpoint(event: EndpointEvent, store: Store): Promise<Notice | null> {
  const { type, trigger, at, since = at } = event
  const isAutomatic = trigger === "automatic"
  const { id, appId, orgId } = event.endpoint
  const endpoint = isAutomatic ? await store.getEndpoint(appId, id) : event.endpoint
  if (endpoint === null) return null
  const data = async () => ({
    ...(await namesOf(store, orgId, appId)),
    endpointId: id,
    endpointUid: endpoint.uid,
    ...(isAutomatic ? { failSince: new Date(since).toISOString() } : {}),
    ...(type === "endpoint.disabled" ? { trigger } : {}),
  })
  return { type, orgId, data, idempotencyKey: isAutomatic ? `${type}:${id}:${at}` : null }
}

async function namesOf(store: Store, orgId: string, appId: string): Promise<object> {
  const application = await store.getApplication(orgId, appId)
  return { appId, appUid: application?.uid ?? null }
}

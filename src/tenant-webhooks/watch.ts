/** From what became of deliveries to what a tenant is told of it. */
import type { AttemptEvent, DeadEvent, EventBus } from "../observe/events.ts"
import type { Store } from "../store/store.ts"
import type { TenantWebhookEventType, TenantWebhooks } from "./tenant-webhooks.ts"

/** A message that failed this often is said to be failing, and to have recovered when it arrives after all. */
const FAILING_ATTEMPTS = 4
const GIVEN_UP = new Set(["exhausted", "expired", "rejected", "gone"])

export function watchDeliveries(bus: EventBus, store: Store, tenantWebhooks: TenantWebhooks): void {
  // Only of this process: the others tell of their own.
  bus.onPublished((event) => {
    if (event.type === "delivery.dead" && GIVEN_UP.has(event.reason)) {
      void tell(event, "message.attempt.exhausted")
    } else if (event.type === "delivery.attempt") {
      const { success, attempt_count, next_retry_at, endpoint_disabled } = event
      if (endpoint_disabled) void tellDisabled(event)
      if (success && attempt_count > FAILING_ATTEMPTS) void tell(event, "message.attempt.recovered")
      if (!success && attempt_count === FAILING_ATTEMPTS && next_retry_at !== null)
        void tell(event, "message.attempt.failing")
    }
  })

  async function tell(event: DeadEvent | AttemptEvent, type: TenantWebhookEventType): Promise<void> {
    const endpoint = await store.getEndpoint(event.app_id, event.webhook_id).catch(() => null)
    if (endpoint === null) return
    const once = `${event.webhook_delivery_id}:${event.attempt_count}:${event.at}`
    await tenantWebhooks.announce(
      endpoint.orgId,
      type,
      () => describeAttempt(store, endpoint.orgId, event),
      once,
    )
  }

  async function tellDisabled({ app_id, webhook_id, at }: AttemptEvent): Promise<void> {
    const endpoint = await store.getEndpoint(app_id, webhook_id).catch(() => null)
    if (endpoint === null) return
    const data = async () => ({
      ...(await named(store, endpoint.orgId, app_id)),
      endpointId: endpoint.id,
      endpointUid: endpoint.uid,
      failSince: new Date(at).toISOString(),
      trigger: "automatic",
    })
    await tenantWebhooks.announce(endpoint.orgId, "endpoint.disabled", data, `${webhook_id}:${at}`)
  }
}

async function describeAttempt(
  store: Store,
  orgId: string,
  event: DeadEvent | AttemptEvent,
): Promise<object> {
  const page = { limit: 1, order: "descending", from: null, back: false } as const
  const [attempt] = await store.listAttempts({ deliveryId: event.webhook_delivery_id }, page)
  const [message] = await store.getMessages([event.message_id], false)
  return {
    ...(await named(store, orgId, event.app_id)),
    msgId: event.message_id,
    msgEventId: message?.eventId ?? null,
    endpointId: event.webhook_id,
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

async function named(store: Store, orgId: string, appId: string): Promise<object> {
  const application = await store.getApplication(orgId, appId)
  return { appId, appUid: application?.uid ?? null }
}

/** Events of the internal stream, as the engine emits them. */
import type { Change } from "../../src/core/settle.ts"
import type { DeliveryEvent } from "../../src/observe/event-stream.ts"

/** A delivery that a 200 ended, unless told otherwise. */
export function settledEvent(
  change: Partial<Change> = {},
  attempt: Partial<DeliveryEvent["attempt"]> | null = {},
  type: DeliveryEvent["type"] = "delivery.settled",
): DeliveryEvent {
  return {
    type,
    delivery: {
      id: "dlv_1",
      messageId: "msg_1",
      sessionId: null,
      eventType: "order.paid",
      errorDetail: null,
      ageFrom: 0,
    },
    endpointId: "ep_1",
    appId: "app_1",
    orgId: "org_1",
    change: {
      status: "delivered",
      attemptCount: 1,
      nextRetryAt: null,
      deadReason: null,
      errorDetail: null,
      disableEndpoint: false,
      holdLaneUntil: null,
      ...change,
    } as Change,
    attempt:
      attempt &&
      ({
        id: "atmpt_1",
        attemptNumber: 1,
        status: "succeeded",
        responseStatus: 200,
        responseBody: null,
        startedAt: 900,
        durationMs: 100,
        ...attempt,
      } as DeliveryEvent["attempt"]),
    start: attempt && { kind: "first", dueAt: 0, span: null },
    detail: null,
    at: 1000,
  }
}

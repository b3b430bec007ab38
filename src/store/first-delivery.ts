/** A delivery that is handed over when its message is accepted, as a fetch would return it. */
import type { ClaimedDelivery, NewMessage } from "./model.ts"

export function firstDelivery(message: NewMessage, seq: number, id: string): ClaimedDelivery {
  return {
    seq,
    id,
    messageId: message.id,
    sessionId: message.sessionId,
    eventType: message.eventType,
    payload: message.payload,
    contentType: message.contentType,
    priority: message.priority,
    manual: false,
    errorDetail: null,
    status: "pending",
    attemptCount: 0,
    maxAttempts: message.maxAttempts,
    receivedAt: message.receivedAt,
    ageFrom: message.wakeAt,
    nextRetryAt: null,
    lastAttemptedAt: null,
    stalls: 0,
    traceparent: message.traceparent,
    inbound: message.inbound,
  }
}

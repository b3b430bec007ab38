/** What a lane is woken with: nothing but the time, or a delivery that the store handed over as it accepted the message. */
import type { Accepted, ClaimedDelivery, Handed, LaneWake, NewMessage, Priority } from "../store/store.ts"

export interface Woken extends LaneWake {
  readonly delivery?: ClaimedDelivery
  /** Of the claim that the delivery was handed to. */
  readonly token?: number
  /** Of what has to be fetched. */
  readonly priority?: Priority
}

/** The lanes of accepted messages; a delivery that was handed over is as it would have been fetched. */
export function wokenBy(accepted: readonly Accepted[], messages: readonly NewMessage[]): Woken[] {
  const woken: Woken[] = []
  for (const [i, { lanes }] of accepted.entries())
    for (const { endpointId, appId, dueAt, handed } of lanes)
      woken.push(
        handed === undefined
          ? { endpointId, appId, dueAt, priority: messages[i]!.priority }
          : {
              endpointId,
              appId,
              dueAt,
              delivery: firstAttempt(messages[i]!, handed, dueAt),
              token: handed.token,
            },
      )
  return woken
}

function firstAttempt(message: NewMessage, { seq, id }: Handed, dueAt: number): ClaimedDelivery {
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
    ageFrom: dueAt,
    nextRetryAt: null,
    lastAttemptedAt: null,
    stalls: 0,
  }
}

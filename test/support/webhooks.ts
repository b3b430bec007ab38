/** Webhooks as an agent hands them over, and their outcomes. */
import type { AgentEvent } from "../../src/agent/event.ts"
import type { AgentHandled } from "../../src/agent/options.ts"

export function webhook(changes: Partial<AgentEvent> = {}): AgentEvent {
  return {
    deliveryId: "dlv_1",
    messageId: "msg_1",
    endpointId: "ep_1",
    sourceId: "src_1",
    eventType: "push",
    attempt: 1,
    manual: false,
    receivedAt: new Date(0),
    method: "POST",
    path: "/hooks",
    query: "?team=core",
    headers: [["Content-Type", "application/json"]],
    body: Buffer.from("{}"),
    traceparent: null,
    deadlineMs: 30_000,
    ...changes,
  }
}

export function handled(
  event: AgentEvent,
  status: number | null,
  { error = null, durationMs = 5 }: { readonly error?: string | null; readonly durationMs?: number } = {},
): AgentHandled {
  const isSuccess = status !== null && status < 300
  const result = isSuccess ? "success" : status !== null && status < 500 ? "permanent" : "transient"
  const outcome = { result, status, error, retryAfterSeconds: null, response: null } as const
  return { event, outcome, durationMs, isRepeated: false }
}

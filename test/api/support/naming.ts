/** How requests name the resources that they are about. */
import type { Operation } from "./operations.ts"
import { type Known, type Names, type Request, requestOf } from "./sample.ts"

/** How a request names what it is about. */
export interface Naming {
  readonly names: Names
  readonly references: Known
}

/** How each thing of a tenant is called. */
export interface Called {
  readonly app: string
  readonly endpoint: string
  readonly operational: string
  readonly source: string
  readonly message: string
  readonly attempt: string
  readonly dead: string
  readonly waiting: string
  readonly task: string
  readonly key: string
  readonly session: string
  readonly policy: string
  readonly eventType: string
  readonly agent: string
}

const HOUR_MS = 3_600_000

/** Values for the other fields of a request: those that it needs to succeed, and whose traces would show that it did. */
export const BESIDES: Known = {
  url: "http://127.0.0.1:9/changed",
  name: "changed",
  description: "changed",
  headers: { "x-changed": "yes" },
  payload: { changed: true },
  scope: "application",
  since: new Date(Date.now() - HOUR_MS).toISOString(),
  until: new Date(Date.now() + HOUR_MS).toISOString(),
  AlertRuleIn: { seconds: 600 },
  AlertChannelIn: { kind: "webhook", url: "http://127.0.0.1:9/changed" },
  SourceIn: { name: "changed", verification: "none" },
  SourcePatch: { description: "changed" },
  SourceSecretRotateIn: { secret: "changed" },
  PolicyIn: { delays: [60], maxAttempts: 3 },
  // Signs nobody in: these requests come from no page of the server.
  SessionIn: { key: "nonsense" },
  RescheduleIn: { delaySeconds: 60 },
  EventTypeImportOpenApiIn: { spec: { webhooks: { changed: { post: { description: "changed" } } } } },
}

export function namingOf(called: Called): Naming {
  return {
    names: {
      "{app_id}": called.app,
      "{endpoint_id}": called.endpoint,
      "operational-webhook/endpoint/{endpoint_id}": called.operational,
      "{source_id}": called.source,
      "{msg_id}": called.message,
      "{attempt_id}": called.attempt,
      "dead-letter/{delivery_id}": called.dead,
      "delivery/{delivery_id}": called.waiting,
      "{task_id}": called.task,
      "{key_id}": called.key,
      "{session_id}": called.session,
      "retry-policy/{name}": called.policy,
      "alert-channel/{name}": "ops",
      "{alert_id}": "alert_none",
      "{silence_id}": "silence_none",
      "{rule_id}": "oldest-due",
      "{event_type_name}": called.eventType,
      "{agent_name}": called.agent,
    },
    references: {
      app_id: called.app,
      appId: called.app,
      appIds: [called.app],
      endpoint_id: called.endpoint,
      msg_id: called.message,
      ids: [called.message],
      eventType: called.eventType,
      policy: called.policy,
      q: called.endpoint,
    },
  }
}

/** The last of `named` is for all the names that follow. */
export function requestFor(operation: Operation, named: readonly Naming[], refersTo: Naming): Request {
  return requestOf(
    operation,
    named.map(({ names }) => names),
    { ...BESIDES, ...refersTo.references },
  )
}

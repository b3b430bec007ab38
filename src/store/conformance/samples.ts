/** Sample objects of the conformance suite; a test gives only the fields that it is about. */

import type { GateUpdate } from "../../core/gate.ts"
import type { Outcome } from "../../core/outcome.ts"
import { PRESETS } from "../../core/presets.ts"
import { HEALTHY } from "../../core/protection.ts"
import { settle } from "../../core/settle.ts"
import type {
  Application,
  ClaimedDelivery,
  Endpoint,
  Entry,
  LaneWant,
  NewAttempt,
  NewMessage,
  Settlement,
  Task,
  TaskStep,
} from "../store.ts"
import type { OfLane, TestFetch } from "./lanes.ts"

export const NOW = 1_900_000_000_000
/** Both clocks agree. */
export const AT = { now: NOW, wall: NOW }
/** The default tenant of the tests, and another one. */
export const ORG = "org_main"
export const OTHER_ORG = "org_other"

let counter = 0
const newId = (prefix: string) => `${prefix}_${String(++counter).padStart(27, "0")}`

export const sample = {
  application(more: Partial<Application> = {}): Application {
    return {
      id: newId("app"),
      orgId: ORG,
      uid: null,
      name: "Acme",
      metadata: {},
      rateLimit: null,
      createdAt: NOW,
      updatedAt: NOW,
      ...more,
    }
  },
  endpoint(appId: string, more: Partial<Endpoint> = {}): Endpoint {
    return {
      id: newId("ep"),
      orgId: ORG,
      appId,
      uid: null,
      url: "http://127.0.0.1:9/hook",
      description: "",
      eventTypes: null,
      channels: null,
      headers: { "x-a": "b" },
      metadata: { k: "v" },
      retryName: null,
      retryPolicy: null,
      ordered: false,
      concurrency: null,
      rateLimit: null,
      appRateLimit: null,
      disabled: false,
      paused: false,
      pausedAt: null,
      resumedAt: null,
      holdUntil: null,
      protection: HEALTHY,
      disabledAt: null,
      disabledReason: null,
      gateEpoch: 0,
      secrets: Buffer.from("sealed"),
      version: 1,
      apiVersion: 1,
      createdAt: NOW,
      updatedAt: NOW,
      ...more,
    }
  },
  message(app: string, more: Partial<NewMessage> = {}): NewMessage {
    return {
      id: newId("msg"),
      orgId: ORG,
      app,
      to: null,
      eventType: "invoice.paid",
      payload: Buffer.from('{"n":1}'),
      contentType: "application/json",
      eventId: null,
      channels: [],
      tags: [],
      sessionId: null,
      metadata: {},
      priority: "normal",
      maxAttempts: null,
      receivedAt: NOW,
      deliverAt: null,
      dated: (more.deliverAt ?? null) !== null,
      wakeAt: Math.max(more.receivedAt ?? NOW, more.deliverAt ?? 0),
      idempotency: null,
      payloadUntil: null,
      purgeUnmatchedAt: NOW + 1000,
      traceparent: null,
      inbound: null,
      ...more,
    }
  },
  attempt(more: Partial<NewAttempt> = {}): NewAttempt {
    return {
      id: newId("atmpt"),
      status: "failed",
      manual: false,
      attemptNumber: 1,
      url: "http://127.0.0.1:9/hook",
      responseStatus: 500,
      responseBody: Buffer.from([0, 255, 1]),
      responseTruncated: false,
      error: "HTTP 500",
      startedAt: NOW,
      durationMs: 3,
      timing: "1,2,,4",
      ...more,
    }
  },
  task(more: Partial<Task>): Task {
    return {
      seq: 0,
      id: newId("qtask"),
      orgId: ORG,
      action: "retry",
      type: "dead.retry",
      filter: {},
      status: "running",
      data: null,
      total: 0,
      done: 0,
      changed: 0,
      cursor: 0,
      upTo: 0,
      createdAt: NOW,
      updatedAt: NOW,
      ...more,
    }
  },
  step(taskId: string, more: Partial<TaskStep> = {}): TaskStep {
    return {
      taskId,
      expectedCursor: 0,
      amendments: [],
      additions: [],
      expunged: [],
      looked: 0,
      cursor: null,
      at: AT,
      ...more,
    }
  },
  entry(more: Partial<Entry> = {}): Entry {
    return {
      kind: "key",
      orgId: ORG,
      name: newId("key"),
      owner: null,
      body: '{"scope":"admin"}',
      version: 1,
      createdAt: NOW,
      updatedAt: NOW,
      expiresAt: null,
      ...more,
    }
  },
}

/** The first page of a list in descending order. */
export function newest(limit: number) {
  return { limit, order: "descending", from: null, back: false } as const
}

/** A fetch of everything that is due. */
export function laneFetch(
  endpointId: string,
  token: number,
  { knownVersion, ...want }: Partial<LaneWant & Pick<TestFetch, "knownVersion">> = {},
): TestFetch {
  return {
    endpointId,
    token,
    want: { limit: 10, starting: 99, retryShare: 0, retries: 1000, handoffPlaces: 0, ...want },
    ...(knownVersion === undefined ? {} : { knownVersion }),
  }
}

export function claimed(
  endpointId: string,
  token: number,
  delivery: ClaimedDelivery,
): OfLane & { readonly delivery: ClaimedDelivery } {
  return { endpointId, token, delivery }
}

/** The settlement of a claimed delivery after this status; null: no response. */
export function settlement(
  endpointId: string,
  token: number,
  delivery: ClaimedDelivery,
  status: number | null,
  now = NOW,
): OfLane & Settlement {
  const outcome: Outcome =
    status === null
      ? { kind: "failure", cause: "timeout" }
      : { kind: "response", status, excerpt: "", retryAfter: null }
  const change = settle(delivery, outcome, PRESETS.gateway, now, () => 0.5)
  const attempt = sample.attempt({
    status: change.status === "delivered" ? "succeeded" : "failed",
    attemptNumber: delivery.attemptCount + 1,
    manual: delivery.manual,
    responseStatus: status,
    startedAt: now,
  })
  return {
    ...claimed(endpointId, token, delivery),
    change,
    attempt,
    settledAt: now,
    gate: null,
  }
}

/** The update that a Retry-After makes of a lane's gate. */
export function held(holdUntil: number, revision: number, epoch = 0): GateUpdate {
  return {
    holdUntil,
    protection: HEALTHY,
    revision,
    epoch,
    closes: true,
    disables: null,
    transitions: [],
    previous: HEALTHY,
  }
}

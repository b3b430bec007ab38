/** Facts and alerts for the tests of this folder. */

import type { Alert } from "../../src/alerts/alert-state.ts"
import type { Facts } from "../../src/alerts/evaluate.ts"
import { HEALTH_STATES, type HealthState } from "../../src/core/health.ts"
import type { Snapshot, TroubledEndpoint } from "../../src/monitor/snapshot.ts"

export const NOW = 1_900_000_000_000

export function snapshotOf(more: Partial<Snapshot> = {}): Snapshot {
  const counts = HEALTH_STATES.map((state) => [
    state,
    (more.troubled ?? []).filter(({ health }) => health === state).length,
  ])
  return {
    at: NOW,
    deliveries: { due: 0, scheduled: 0, retrying: 0, held: 0 },
    oldestDue: null,
    deadLetters: [],
    waiting: {},
    endpoints: Object.fromEntries(counts) as Snapshot["endpoints"],
    troubled: [],
    ...more,
  }
}

export function troubled(
  health: HealthState,
  agoMs: number,
  more: Partial<TroubledEndpoint> = {},
): TroubledEndpoint {
  return {
    endpointId: "ep_1",
    appId: "app_1",
    orgId: "org_1",
    url: "https://hooks.example.com/secret?token=1",
    agent: null,
    health,
    since: NOW - agoMs,
    why: "the last 7 attempts failed; last error: HTTP 500",
    disablesAt: null,
    ...more,
  }
}

export function factsOf(more: Partial<Facts> & { readonly snapshot?: Snapshot } = {}): Facts {
  return {
    snapshot: snapshotOf(),
    recent: { attempts: 0, retries: 0, dead: 0 },
    now: NOW,
    firing: () => new Set(),
    ...more,
  }
}

export function alertOf(more: Partial<Alert> = {}): Alert {
  return {
    id: "alert_1",
    rule: "endpoint-failing",
    subject: "ep_1",
    name: "ep_1 (hooks.example.com)",
    detail: "failing",
    since: NOW - 900_000,
    phase: "firing",
    missed: 0,
    startedAt: NOW,
    endedAt: null,
    acknowledged: null,
    told: {},
    withheld: [],
    ...more,
  }
}

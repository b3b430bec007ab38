/** Gauges of the whole store. Only the leader of the processes exports them, so that a `sum()` over processes counts nothing twice. */
import { Gauge, type Registry } from "@prometheus-io/client"
import { HEALTH_STATES, type HealthState } from "../../core/health.ts"
import { DEAD_REASONS, type DeadReason } from "../../core/policy.ts"

/** The numbers of a monitor's snapshot. */
export interface StoreNumbers {
  readonly at: number
  readonly deliveries: { readonly [state in "due" | "scheduled" | "retrying" | "held"]: number }
  readonly oldestDue: { readonly at: number } | null
  readonly deadLetters: readonly { readonly reason: DeadReason; readonly count: number }[]
  readonly endpoints: { readonly [health in HealthState]: number }
}

/** Firing alerts by rule: on the leader, of all rules; in another process, alerts of its own. */
export type FiringAlerts = () => { readonly [rule: string]: number }

/** A `MonitorListener`. */
export class StoreWideMetrics {
  readonly #deliveries: Gauge<"state">
  readonly #oldestDue: Gauge
  readonly #deadLetters: Gauge<"reason">
  readonly #endpoints: Gauge<"health">
  readonly #takenAt: Gauge
  #isLeader: () => boolean = () => true
  #firing: FiringAlerts = () => ({})

  constructor(registry: Registry) {
    const registers = [registry]
    const standDownUnlessLeader = () => {
      if (!this.#isLeader()) this.stoodDown()
    }
    this.#deliveries = new Gauge({
      name: "posthorn_deliveries",
      help: "Unfinished deliveries: due (or being sent), scheduled for a later first attempt, retrying later, or held with their endpoint",
      labelNames: ["state"],
      registers,
      // Before the other gauges are read, which are registered after this one.
      collect: standDownUnlessLeader,
    })
    this.#oldestDue = new Gauge({
      name: "posthorn_oldest_due_timestamp_seconds",
      help: "Since when the oldest due delivery is due; absent when none is due. Endpoints that fail are left out",
      registers,
    })
    this.#deadLetters = new Gauge({
      name: "posthorn_dead_letters",
      help: "Dead deliveries that nobody discarded or called off, by reason",
      labelNames: ["reason"],
      registers,
    })
    this.#endpoints = new Gauge({
      name: "posthorn_endpoints",
      help: "Endpoints by health",
      labelNames: ["health"],
      registers,
    })
    this.#takenAt = new Gauge({
      name: "posthorn_snapshot_timestamp_seconds",
      help: "When the leader last read these gauges from the store",
      registers,
    })
    const firing = () => this.#firing()
    new Gauge({
      name: "posthorn_alerts_firing",
      help: "Firing alerts by rule",
      labelNames: ["rule"],
      registers,
      collect() {
        this.reset()
        for (const [rule, count] of Object.entries(firing())) this.set({ rule }, count)
      },
    })
    this.stoodDown()
  }

  /** A leader that is cut off from the store is not told when another process takes its place. */
  watchLeader(isLeader: () => boolean): void {
    this.#isLeader = isLeader
  }

  watchAlerts(firing: FiringAlerts): void {
    this.#firing = firing
  }

  snapshot({ at, deliveries, oldestDue, deadLetters, endpoints }: StoreNumbers): void {
    for (const state of ["due", "scheduled", "retrying", "held"] as const)
      this.#deliveries.set({ state }, deliveries[state])
    for (const health of HEALTH_STATES) this.#endpoints.set({ health }, endpoints[health])
    for (const reason of REASONS) this.#deadLetters.set({ reason }, 0)
    for (const { reason, count } of deadLetters) this.#deadLetters.set({ reason }, count)
    this.#takenAt.set(at / 1000)
    if (oldestDue === null) this.#oldestDue.remove()
    else this.#oldestDue.set(oldestDue.at / 1000)
  }

  /** The last numbers stay, with their time. */
  surveyFailed(): void {}
  failed(): void {}

  stoodDown(): void {
    for (const gauge of [this.#deliveries, this.#deadLetters, this.#endpoints]) gauge.reset()
    // `reset` would set a gauge without labels to 0.
    for (const gauge of [this.#oldestDue, this.#takenAt]) gauge.remove()
  }
}

/** Deliveries that were called off are no dead letters. */
const REASONS = DEAD_REASONS.filter((reason) => reason !== "cancelled" && reason !== "expunged")

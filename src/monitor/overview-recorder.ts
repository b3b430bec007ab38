/** Saves an overview of each snapshot of the leader. */
import { firstHourOf } from "../core/attempt-window.ts"
import type { Clock } from "../core/clock.ts"
import type { RollupSum, Store } from "../store/store.ts"
import type { History } from "./history.ts"
import type { MonitorListener } from "./monitor.ts"
import {
  firstShownHour,
  type HourCounts,
  type Overview,
  type OverviewEndpoint,
  withHours,
} from "./overview.ts"
import { OverviewStore } from "./overview-store.ts"
import { MOST_COUNTED, type Snapshot } from "./snapshot.ts"

export class OverviewRecorder implements MonitorListener {
  readonly #store: Store
  readonly #clock: Clock
  readonly #overviews: OverviewStore

  constructor(store: Store, clock: Clock) {
    this.#store = store
    this.#clock = clock
    this.#overviews = new OverviewStore(store)
  }

  async snapshot(snapshot: Snapshot, _history: History, sums: readonly RollupSum[]): Promise<void> {
    const now = this.#clock.now()
    const read = await this.#overviews.read(now)
    const { at: surveyedAt, deliveries, endpoints, deadLetters } = snapshot
    const [oldestDue, troubled, hours] = await Promise.all([
      this.#oldestDueOf(snapshot),
      this.#troubledOf(snapshot),
      this.#hoursOf(read.overview, sums, surveyedAt),
    ])
    const overview = { surveyedAt, deliveries, oldestDue, endpoints, troubled, deadLetters, hours }
    await this.#overviews.save(overview, read, now)
  }

  surveyFailed(): void {}
  failed(): void {}
  stoodDown(): void {}

  async #oldestDueOf({ oldestDue }: Snapshot): Promise<Overview["oldestDue"]> {
    if (oldestDue === null) return null
    const [endpoint] = await this.#store.getEndpoints([oldestDue.endpointId])
    return { ...oldestDue, appId: endpoint?.appId ?? null }
  }

  async #troubledOf({ troubled, waiting }: Snapshot): Promise<OverviewEndpoint[]> {
    const shown = troubled.slice(0, MOST_COUNTED)
    const orgs = new Map(shown.map(({ appId, orgId }) => [appId, orgId]))
    const applications = await Promise.all(
      [...orgs].map(([appId, orgId]) => this.#store.getApplication(orgId, appId)),
    )
    const names = new Map(applications.map((one) => [one?.id, one?.name]))
    return shown.map(({ endpointId, orgId, appId, url, health, why, since }) => ({
      ...{ endpointId, orgId, appId, appName: names.get(appId) ?? "", url, health, why, since },
      waiting: waiting[endpointId] ?? 0,
    }))
  }

  /**
   * The monitor reads the sums of this hour and the one before, which are the only ones that still change. All other hours are those of
   * the overview before, unless it is from an earlier hour than that: the hours since then are read once more.
   */
  async #hoursOf(before: Overview | null, sums: readonly RollupSum[], now: number): Promise<HourCounts[]> {
    const since = before === null ? firstShownHour(now) : firstHourOf(before.surveyedAt, 1)
    if (since >= firstHourOf(now, 1)) return withHours(before!.hours, sums, now)
    const from = Math.max(since, firstShownHour(now))
    const more = await this.#store.sumRollups({ since: from, withShadows: false }, ["hour", "attemptNumber"])
    return withHours(before?.hours ?? [], more, now)
  }
}

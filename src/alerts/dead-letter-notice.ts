/** The notice about dead letters: how many deliveries died since a channel's last notice, and the largest groups of them. */
import { NOTIFICATIONS_ORG } from "../core/org.ts"
import { HOUR_MS } from "../store/rollups.ts"
import type { DeadGroup, RollupSum, Store } from "../store/store.ts"
import { listSubjects } from "./grouping.ts"
import { MOST_SUBJECTS, type Notification, type Severity } from "./notification.ts"
import { definitionOf } from "./rules.ts"
import { countText } from "./texts.ts"

/** What a channel knows. */
export interface NoticeState {
  /** Of the monitor's count of deaths, which only grows. */
  readonly counted: number
  /** When the last notice was sent; 0: never. */
  readonly at: number
}

/** A channel is told of deaths from the moment that it is first seen. */
export function countedBy(state: NoticeState | undefined, dead: number): NoticeState {
  if (state === undefined) return { counted: dead, at: 0 }
  // The monitor's count begins again when its memory was lost.
  return dead < state.counted ? { ...state, counted: dead } : state
}

/** How many deaths a notice would be about; 0: no notice is due. */
export function deathsDue({ counted, at }: NoticeState, dead: number, minutes: number, now: number): number {
  return now - at >= minutes * 60_000 ? dead - counted : 0
}

export type DeadSource = Pick<Store, "sumRollups" | "groupDead" | "getEndpoints">

export interface DeadSummary extends DeadGroup {
  readonly url: string | null
}

/** The largest group of each of the ten endpoints with the most deaths since `since`, by whole hours. */
export async function readDeadGroups(store: DeadSource, since: number): Promise<DeadSummary[]> {
  const hours = { since: Math.floor(since / HOUR_MS) * HOUR_MS, exceptOrgId: NOTIFICATIONS_ORG }
  const sums = (await store.sumRollups(hours, ["endpoint"])).filter(({ dead }) => dead > 0)
  const worst = sums.toSorted(byDeaths).slice(0, MOST_SUBJECTS)
  const ids = worst.map(({ endpointId }) => endpointId!)
  const urls = new Map((await store.getEndpoints(ids)).map(({ id, url }) => [id, url]))
  const groups: DeadSummary[] = []
  for (const endpointId of ids) {
    const filter = { endpointId, undiscarded: true, calledOff: false }
    const [group] = await store.groupDead(filter, 1)
    if (group !== undefined) groups.push({ ...group, url: urls.get(endpointId) ?? null })
  }
  return groups
}

const byDeaths = (a: RollupSum, b: RollupSum) => b.dead - a.dead || a.endpointId!.localeCompare(b.endpointId!)

const LONGEST_ERROR = 200

export function noticeOf(
  deaths: number,
  groups: readonly DeadSummary[],
  severity: Severity,
  key: string,
  now: number,
): Notification {
  const { title, about } = definitionOf("dead-letter")
  const subjects = groups.map(({ endpointId, url, count, deadReason, errorDetail, oldestAt }) => ({
    name: url === null ? endpointId : `${endpointId} (${URL.parse(url)?.host ?? "no URL"})`,
    since: oldestAt,
    detail: `${countText(count, "dead letter")}, ${deadReason}${errorDetail === null ? "" : `: ${errorDetail.slice(0, LONGEST_ERROR)}`}`,
  }))
  return {
    kind: "dead_letters",
    rule: "dead-letter",
    severity,
    summary: `${title}: ${countText(deaths, "delivery was", "deliveries were")} given up`,
    description: about,
    groupKey: key,
    startedAt: now,
    endedAt: null,
    ...listSubjects(subjects),
    link: null,
  }
}

/** The notice about dead letters: how many deliveries died since a channel's last notice, and at which endpoints. */
import { countText, timeText } from "../core/wording.ts"
import { HOUR_MS } from "../store/rollups.ts"
import type { Delivery, RollupSum, Store } from "../store/store.ts"
import { MOST_SUBJECTS, type Notification, type Severity } from "./notification.ts"
import { definitionOf } from "./rules.ts"

/** What a channel knows. */
export interface NoticeState {
  /** Of the monitor's count of deaths, which only grows. */
  readonly counted: number
  /** When the count was taken: the deaths that the next notice is about are later. */
  readonly since: number
  /** When the last notice was sent; 0: never. */
  readonly at: number
}

/** A channel is told of deaths from the moment that it is put, or if that was not saved, first seen. */
export const newNotices = (dead: number, now: number): NoticeState => ({ counted: dead, since: now, at: 0 })

export function countedBy(state: NoticeState | undefined, dead: number, now: number): NoticeState {
  if (state === undefined) return newNotices(dead, now)
  // The monitor's count begins again when its memory was lost.
  return dead < state.counted ? skipTo(state, dead, now) : state
}

/** Deaths from before are not told later. */
export function skipTo(state: NoticeState, dead: number, now: number): NoticeState {
  return state.counted === dead ? state : { ...state, counted: dead, since: now }
}

/** How many deaths a notice would be about; 0: no notice is due. */
export function deathsDue({ counted, at }: NoticeState, dead: number, minutes: number, now: number): number {
  return now - at >= minutes * 60_000 ? dead - counted : 0
}

export type DeadSource = Pick<Store, "sumRollups" | "listDeliveries" | "getEndpoints">

export interface DeadEndpoint {
  readonly endpointId: string
  readonly url: string | null
  /** Deliveries that died since the start of the first hour. */
  readonly deaths: number
  /** Its newest dead letter; null: nobody kept one. */
  readonly newest: Pick<Delivery, "deadReason" | "errorDetail"> | null
}

export interface Deaths {
  /** Roll-ups are by the hour. */
  readonly since: number
  /** The ten with the most deaths. */
  readonly endpoints: readonly DeadEndpoint[]
  /** How many endpoints are not listed. */
  readonly more: number
}

/** Reads deaths once for each hour that channels ask for. */
export class DeathReader {
  readonly #store: DeadSource
  readonly #read = new Map<number, Promise<Deaths>>()

  constructor(store: DeadSource) {
    this.#store = store
  }

  read(since: number): Promise<Deaths> {
    const hour = Math.floor(since / HOUR_MS) * HOUR_MS
    const deaths = this.#read.get(hour) ?? readDeaths(this.#store, hour)
    this.#read.set(hour, deaths)
    return deaths
  }
}

async function readDeaths(store: DeadSource, since: number): Promise<Deaths> {
  const sums = await store.sumRollups({ since, withShadows: false }, ["endpoint"])
  const dead = sums.filter((sum) => sum.dead > 0).toSorted(byDeaths)
  const worst = dead.slice(0, MOST_SUBJECTS)
  const found = await store.getEndpoints(worst.map(({ endpointId }) => endpointId!))
  const urls = new Map(found.map(({ id, url }) => [id, url]))
  const endpoints: DeadEndpoint[] = []
  for (const sum of worst) {
    const endpointId = sum.endpointId!
    const filter = { endpointId, status: "dead", calledOff: false } as const
    const [newest = null] = await store.listDeliveries(filter, NEWEST)
    endpoints.push({ endpointId, url: urls.get(endpointId) ?? null, deaths: sum.dead, newest })
  }
  return { since, endpoints, more: dead.length - worst.length }
}

const NEWEST = { limit: 1, order: "descending", from: null, back: false } as const

const byDeaths = (a: RollupSum, b: RollupSum) => b.dead - a.dead || a.endpointId!.localeCompare(b.endpointId!)

const LONGEST_ERROR = 200

export function noticeOf(
  count: number,
  { since, endpoints, more }: Deaths,
  severity: Severity,
  key: string,
  now: number,
): Notification {
  const { title, about } = definitionOf("dead-letter")
  const subjects = endpoints.map(({ endpointId, url, deaths, newest }) => ({
    name: url === null ? endpointId : `${endpointId} (${URL.parse(url)?.host ?? "no URL"})`,
    since,
    detail: `${deaths} given up since ${timeText(since)}${newest === null ? "" : `; its newest dead letter: ${reasonOf(newest)}`}`,
  }))
  return {
    kind: "dead_letters",
    rule: "dead-letter",
    severity,
    summary: `${title}: ${countText(count, "delivery was", "deliveries were")} given up`,
    description: about,
    groupKey: key,
    startedAt: now,
    endedAt: null,
    subjects,
    more,
  }
}

const reasonOf = ({ deadReason, errorDetail }: Pick<Delivery, "deadReason" | "errorDetail">) =>
  errorDetail === null ? deadReason : `${deadReason}: ${errorDetail.slice(0, LONGEST_ERROR)}`

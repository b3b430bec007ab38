/** Summaries of the live stream: the counts of a period, and the events that are rare enough to be shown in full. */
import type { AcceptedCount } from "../process-channel.ts"
import type { PublicEvent } from "../public-events.ts"
import type { BufferedEvent } from "./event-buffer.ts"
import type { LiveFilter } from "./live-filter.ts"

/** Accepted messages, of all tenants. Only summaries show them. */
export interface AcceptedBatch {
  readonly type: "accepted"
  readonly counts: readonly AcceptedCount[]
  readonly at: number
}

export interface SummaryEvent {
  readonly type: "summary"
  readonly from: number
  readonly to: number
  /** Messages; null for a stream of some endpoints or kinds, since a message has neither. */
  readonly accepted: number | null
  /** Events by kind. */
  readonly counts: { readonly [kind: string]: number }
  readonly failedAttempts: number
  /** Those that are neither attempts nor ends of deliveries. */
  readonly events: readonly PublicEvent[]
  /** How many more of them there were. */
  readonly dropped: number
}

const MOST_EVENTS = 50
const ONLY_COUNTED: ReadonlySet<string> = new Set([
  "delivery.attempt",
  "delivery.delivered",
  "delivery.dead",
] satisfies PublicEvent["type"][])

/** Whether summaries with this filter count accepted messages. */
export function countsAccepted({ summaryMs, endpointIds, kinds }: LiveFilter): boolean {
  return summaryMs !== undefined && endpointIds === null && kinds === null
}

export function acceptedOf({ orgId, appIds }: LiveFilter, { counts }: AcceptedBatch): number {
  return counts
    .filter(([org, app]) => org === orgId && (appIds === null || appIds.includes(app)))
    .reduce((sum, [, , messages]) => sum + messages, 0)
}

/** Adds up the events of one period. */
export class Tally {
  readonly #filter: LiveFilter
  readonly #counts: { [kind: string]: number } = {}
  readonly #events: PublicEvent[] = []
  #accepted = 0
  #failedAttempts = 0
  #dropped = 0
  #isEmpty = true

  constructor(filter: LiveFilter) {
    this.#filter = filter
  }

  get isEmpty(): boolean {
    return this.#isEmpty
  }

  add(buffered: BufferedEvent): void {
    const { event } = this.#filter.seesCounts ? buffered : buffered.withoutCount
    this.#isEmpty = false
    if (event.type === "accepted") {
      this.#accepted += acceptedOf(this.#filter, event)
      return
    }
    this.#counts[event.type] = (this.#counts[event.type] ?? 0) + 1
    if (event.type === "delivery.attempt" && !event.success) this.#failedAttempts++
    if (ONLY_COUNTED.has(event.type)) return
    if (this.#events.length < MOST_EVENTS) this.#events.push(event)
    else this.#dropped++
  }

  toSummary(from: number, to: number): SummaryEvent {
    return {
      type: "summary",
      from,
      to,
      accepted: countsAccepted(this.#filter) ? this.#accepted : null,
      counts: this.#counts,
      failedAttempts: this.#failedAttempts,
      events: this.#events,
      dropped: this.#dropped,
    }
  }
}

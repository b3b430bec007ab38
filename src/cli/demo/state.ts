/** The state of the demo: the scenario writes it, the display reads it. */
import type { Attempt, Delivery, Posthorn, StatusCounts } from "../../index.ts"
import { APP } from "./endpoints.ts"

export const CHAPTERS = ["send", "kill -9", "retry", "dead letters", "replay", "audit"] as const
export type Chapter = (typeof CHAPTERS)[number]

/** The contents of the store, for the table and the audit. */
export interface StoreSnapshot {
  readonly deliveries: readonly Delivery[]
  readonly attempts: readonly Attempt[]
  readonly counts: StatusCounts
}

export type Tone = "good" | "wait" | "bad" | "loud"

export interface Line {
  readonly atMs: number
  readonly tone: Tone
  /** The endpoint's uid; empty for lines about all. */
  readonly who: string
  readonly what: string
}

export class DemoState {
  readonly file: string
  readonly startedAt = Date.now()
  /** Endpoint id → uid, and message id → number of the event. */
  readonly uids = new Map<string, string>()
  readonly numbers = new Map<string, number>()
  readonly lines: Line[] = []
  /** Cut-off attempts that have a line. */
  readonly cutOffs = new Set<string>()
  chapter: Chapter = "send"
  engine = "starting"
  accepted = 0
  snapshot: StoreSnapshot = {
    deliveries: [],
    attempts: [],
    counts: { pending: 0, failed: 0, delivered: 0, dead: 0, calledOff: 0 },
  }
  #onLine: (line: Line) => void = () => {}

  constructor(file: string) {
    this.file = file
  }

  onLine(listener: (line: Line) => void): void {
    this.#onLine = listener
  }

  say(tone: Tone, who: string, what: string, atMs = Date.now()): void {
    const line = { atMs: Math.max(0, atMs - this.startedAt), tone, who, what }
    this.lines.push(line)
    this.#onLine(line)
  }
}

/** One page holds all rows of the demo. */
const PAGE = 250

export async function readSnapshot(posthorn: Posthorn): Promise<StoreSnapshot> {
  const [deliveries, attempts, counts] = await Promise.all([
    posthorn.deliveries.list({ app: APP, limit: PAGE }),
    posthorn.attempts.list({ limit: PAGE }),
    posthorn.stats(APP),
  ])
  return { deliveries: deliveries.data, attempts: attempts.data, counts }
}

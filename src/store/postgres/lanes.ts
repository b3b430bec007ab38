/** Lanes: which endpoints have something to do, and what each of them sends next. */

import { type Moment, steadyTimeOf } from "../../core/clock.ts"
import { transportOf } from "../../core/transport-kind.ts"
import type { LaneFetch } from "../fence.ts"
import { MISSING, type Row, toClaimed, toEndpoint, toLoadedGate } from "../rows.ts"
import type { LaneWake, LaneWork } from "../store.ts"
import type { Context } from "./context.ts"
import { FETCH, fetchValues, JOIN, LINE_UP, PAYLOADS, TAKE_OVER } from "./fetch.ts"
import type { Session } from "./lane-sessions.ts"
import type { Statement } from "./statement.ts"

/** A session's fetch, as it was when it was asked for. */
export interface AskedLane extends LaneFetch {
  /** A session that is open may be handed more while it asks, so it passes over rows with its mark. */
  readonly isOpen: boolean
  readonly session: Pick<Session, "handed" | "fetched">
}

export interface LaneAnswer extends LaneWork {
  readonly lost: boolean
  /** Whether nothing keeps deliveries from being handed over from now on. */
  readonly opens: boolean
  /** The worker that has the lane. */
  readonly owner: number
}

type Verdict = "lost" | "again" | "leftover" | "misplaced" | "held" | "go"

/** When a lane next has something to do by the steady clock: an ordered line when its head is due, a queue when its first is. */
const earliestDue = (lane: string): string => `
  SELECT min(due_at) AS due_at FROM (
    SELECT w.due_at
      FROM generate_series(1, 7) AS r(rank)
      CROSS JOIN LATERAL (
        SELECT coalesce(next_retry_at, 0) AS due_at FROM webhook_deliveries_live d
         WHERE d.webhook_id = ${lane} AND d.rank = r.rank AND (r.rank > 1 OR NOT d.dated) ORDER BY coalesce(next_retry_at, 0) LIMIT 1
      ) w
    UNION ALL
    (SELECT coalesce(next_retry_at, 0) FROM webhook_deliveries_live d
      WHERE d.webhook_id = ${lane} AND d.rank = 0 ORDER BY seq LIMIT 1)
  ) heads`

/** The first date that a lane waits for, by the wall clock. */
const earliestDate = (lane: string): string => `
  SELECT min(next_retry_at) AS date_at FROM (
    SELECT coalesce(next_retry_at, 0) AS next_retry_at FROM webhook_deliveries_live d
     WHERE d.webhook_id = ${lane} AND d.rank = 1 AND d.dated ORDER BY coalesce(next_retry_at, 0) LIMIT 1
  ) first_date`

/** Jumps from lane to lane through the index: a lane with a million rows costs as much as a lane with one. */
const SCAN: Statement = {
  name: "lanes.scan",
  text: `
WITH RECURSIVE found AS (
  (SELECT webhook_id, app_id FROM webhook_deliveries_live WHERE webhook_id > $1 ORDER BY webhook_id LIMIT 1)
  UNION ALL
  SELECT n.webhook_id, n.app_id
    FROM found f
    CROSS JOIN LATERAL (
      SELECT webhook_id, app_id FROM webhook_deliveries_live WHERE webhook_id > f.webhook_id ORDER BY webhook_id LIMIT 1
    ) n
)
SELECT f.webhook_id, f.app_id, due.due_at, dates.date_at, (SELECT url FROM endpoints WHERE id = f.webhook_id) AS url
  FROM (SELECT * FROM found LIMIT $2) f
  CROSS JOIN LATERAL (${earliestDue("f.webhook_id")}) due
  CROSS JOIN LATERAL (${earliestDate("f.webhook_id")}) dates`,
}

export async function scanLanes(
  { database }: Context,
  after: string | null,
  limit: number,
  at?: Moment,
): Promise<LaneWake[]> {
  const rows = await database.runCalmly(SCAN, [after ?? "", limit])
  return rows.map((row) => ({
    endpointId: row.webhook_id as string,
    appId: row.app_id as string,
    dueAt: nextOf(row.due_at as number | null, row.date_at as number | null, at)!,
    transport: transportOf((row.url as string | null) ?? ""),
  }))
}

/** The earlier of a steady time and of a date. */
function nextOf(dueAt: number | null, dateAt: number | null, at: Moment | undefined): number | null {
  if (dateAt === null) return dueAt
  const joinsAt = at === undefined ? dateAt : steadyTimeOf(dateAt, at)
  return dueAt === null ? joinsAt : Math.min(dueAt, joinsAt)
}

/** `heldBack`: what somebody's open transaction keeps from being taken over. */
export async function fetch(
  context: Context,
  lanes: readonly AskedLane[],
  at: Moment,
  heldBack: readonly number[] = [],
): Promise<LaneAnswer[]> {
  const { database, ids } = context
  const { now, wall } = at
  const rows = await database.run(FETCH, fetchValues(lanes, at, heldBack))
  await addPayloads(context, rows)
  const works = toAnswers(context, lanes, rows, at)
  const left = lanes.filter((_, i) => works[i] === null)
  if (left.length === 0) return works as LaneAnswer[]
  const has = (verdict: Verdict) => rows.some((row) => row.verdict === verdict)
  const leftIds = left.map(({ endpointId }) => endpointId)
  let locked: readonly number[] = []
  // Somebody crashed with these lanes in hand: what they were sending is written down as such first.
  if (has("leftover")) {
    const marked = rows.flatMap((row) => row.marked as number[])
    const tokens = left.map(({ token }) => token)
    const taken = await database.run(TAKE_OVER, [leftIds, tokens, ids.make("atmpt", now), now, marked])
    const isTaken = new Set(taken.map(({ seq }) => seq as number))
    locked = marked.filter((seq) => !isTaken.has(seq))
  }
  if (has("misplaced")) {
    await database.run(LINE_UP, [leftIds])
    await database.run(JOIN, [leftIds, now, wall])
  }
  const again = await fetch(context, left, at, [...heldBack, ...locked])
  if (locked.length > 0) for (const [i, work] of again.entries()) again[i] = notYet(work, now)
  return works.map((work) => work ?? again.shift()!)
}

/** How soon a lane is looked at again that has something which was locked. Until then it is not open: it would not find that. */
const LOCKED_MS = 1000

function notYet(answer: LaneAnswer, now: number): LaneAnswer {
  const dueAt = now + LOCKED_MS
  return { ...answer, opens: false, nextDueAt: Math.min(answer.nextDueAt ?? dueAt, dueAt) }
}

/** The most that one statement reads of them. */
const MOST_BYTES = 4 * 1024 * 1024

async function addPayloads({ database }: Context, rows: readonly Row[]): Promise<void> {
  const missing = new Map<string, number>()
  for (const row of rows)
    if (row.payload === null && row.payload_length !== null)
      missing.set(row.message_id as string, row.payload_length as number)
  const payloads = new Map<unknown, unknown>()
  for (const ids of inParts(missing, MOST_BYTES))
    for (const { id, payload } of await database.run(PAYLOADS, [ids])) payloads.set(id, payload)
  for (const row of rows) row.payload ??= payloads.get(row.message_id) ?? null
}

/** The keys, in groups whose values come to no more than `most` together, or of one. */
function inParts(sizes: ReadonlyMap<string, number>, most: number): string[][] {
  const parts: string[][] = []
  let size = Number.POSITIVE_INFINITY
  for (const [key, own] of sizes) {
    if (size + own > most) {
      parts.push([])
      size = 0
    }
    size += own
    parts.at(-1)!.push(key)
  }
  return parts
}

/** Null for a lane that has to be put in order first. */
function toAnswers(
  { accepting }: Context,
  lanes: readonly AskedLane[],
  rows: readonly Row[],
  at: Moment,
): (LaneAnswer | null)[] {
  const byLane = Map.groupBy(rows, ({ ord }) => ord as number)
  return lanes.map(({ endpointId, handoffPlaces }, i) => {
    const found = byLane.get(i + 1)
    const idle = {
      endpoint: null,
      lost: false,
      gate: toLoadedGate(MISSING),
      deliveries: [],
      nextDueAt: null,
      opens: false,
      owner: 0,
    }
    // An endpoint that was never there: nothing can be sent to it.
    if (found === undefined) return idle
    const lane = found[0]!
    const common = { ...idle, gate: toLoadedGate(lane, "lane_"), owner: lane.owner as number }
    switch (lane.verdict as Verdict) {
      case "lost":
        return { ...common, lost: true }
      case "again":
      case "leftover":
      case "misplaced":
        return null
      case "held":
        return common
      case "go": {
        const dueAt = lane.next_due_at as number | null
        const isDue = dueAt !== null && dueAt <= at.now
        const isAccepting = accepting.get(lane.lane_app_id as string) === true
        return {
          ...common,
          endpoint: lane.version === null ? null : toEndpoint({ ...lane, id: endpointId }),
          deliveries: found.filter(({ seq }) => seq !== null).map(toClaimed),
          nextDueAt: nextOf(dueAt, lane.next_date_at as number | null, at),
          opens: handoffPlaces > 0 && !isDue && !lane.lane_ordered && !common.gate.deleted && isAccepting,
        }
      }
      default:
        return lane.verdict as never
    }
  })
}

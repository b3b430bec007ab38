/** Lanes: which endpoints have waiting deliveries, and which of these are sent next. */

import { type Moment, steadyTimeOf } from "../../core/clock.ts"
import { transportOf } from "../../core/transport-kind.ts"
import type { LaneFetch } from "../fence.ts"
import { MISSING, type Row, toClaimed, toEndpoint, toLoadedGate } from "../rows.ts"
import { statement } from "../statements.ts"
import type { LaneWork } from "../store.ts"
import type { Context, Operation } from "./context.ts"
import { FETCH, fetchValues, JOIN, LINE_UP, PAYLOADS, TAKE_OVER } from "./fetch.ts"
import type { Session } from "./lane-sessions.ts"

/** A session's fetch, with its state at the time of the call. */
export interface AskedLane extends LaneFetch {
  /** An open session may get handoffs during the fetch, so the fetch skips rows with its mark. */
  readonly isOpen: boolean
  readonly session: Pick<Session, "handed" | "fetched">
}

export interface LaneAnswer extends LaneWork {
  readonly lost: boolean
  /** Whether the lane can be open. */
  readonly opens: boolean
  /** The worker that has the lane. */
  readonly owner: number
}

type FetchVerdict = "lost" | "again" | "leftover" | "misplaced" | "held" | "go"

/** The lane's earliest due time on the steady clock: of the head of an ordered line, and of the first of each queue. */
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

/** The lane's earliest date on the wall clock. */
const earliestDate = (lane: string): string => `
  SELECT min(next_retry_at) AS date_at FROM (
    SELECT coalesce(next_retry_at, 0) AS next_retry_at FROM webhook_deliveries_live d
     WHERE d.webhook_id = ${lane} AND d.rank = 1 AND d.dated ORDER BY coalesce(next_retry_at, 0) LIMIT 1
  ) first_date`

/** Skips from lane to lane through the index: a lane with a million rows costs as much as a lane with one. */
const SCAN = statement(
  "lanes.scan",
  `
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
)

export const scanLanes: Operation<"scanLanes"> = async ({ database }, after, limit, at) => {
  const rows = await database.runCalmly(SCAN, [after ?? "", limit])
  return rows.map((row) => ({
    endpointId: row.webhook_id as string,
    appId: row.app_id as string,
    dueAt: nextOf(row.due_at as number | null, row.date_at as number | null, at)!,
    transport: transportOf((row.url as string | null) ?? ""),
  }))
}

/** The earlier of a time on the steady clock and a date. */
function nextOf(dueAt: number | null, dateAt: number | null, at: Moment | undefined): number | null {
  if (dateAt === null) return dueAt
  const joinsAt = at === undefined ? dateAt : steadyTimeOf(dateAt, at)
  return dueAt === null ? joinsAt : Math.min(dueAt, joinsAt)
}

/** `heldBack`: deliveries that another transaction has locked, so that they cannot be taken over now. */
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
  const has = (verdict: FetchVerdict) => rows.some((row) => row.verdict === verdict)
  const leftIds = left.map(({ endpointId }) => endpointId)
  let locked: readonly number[] = []
  // A worker crashed with these lanes: first its deliveries in hand become attempts of unknown outcome.
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

/** When a lane with locked deliveries is fetched again. Until then it is not open: an open lane would not find them. */
const LOCKED_MS = 1000

function notYet(answer: LaneAnswer, now: number): LaneAnswer {
  const dueAt = now + LOCKED_MS
  return { ...answer, opens: false, nextDueAt: Math.min(answer.nextDueAt ?? dueAt, dueAt) }
}

/** Payloads that one statement reads. */
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

/** The keys in groups, each with values of at most `most` in total, or with one key. */
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

/** Null for a lane that needs another statement first. */
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
    // There is no such endpoint.
    if (found === undefined) return idle
    const lane = found[0]!
    const common = { ...idle, gate: toLoadedGate(lane, "lane_"), owner: lane.owner as number }
    switch (lane.verdict as FetchVerdict) {
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

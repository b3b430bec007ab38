/** Lanes: which endpoints have waiting deliveries, and which of these are sent next. */

import { type Moment, steadyTimeOf } from "../../core/clock.ts"
import { closedBy } from "../../core/gate.ts"
import { STALL_WAITS_MS } from "../../core/settle.ts"
import { transportOf } from "../../core/transport-kind.ts"
import type { FetchedLane, LaneFetch } from "../fence.ts"
import { MISSING, type Row, toClaimed, toLoadedGate } from "../rows.ts"
import type { ClaimedDelivery, LaneWake } from "../store.ts"
import { insertAttempt } from "./attempts.ts"
import type { Context } from "./context.ts"
import { readEndpoint } from "./endpoints.ts"
import { LIVE } from "./schema.ts"

const DUE = "coalesce(next_retry_at, 0)"
/** Parts of the index `deliveries_live`: waiting rows, and rows that were handed over, which a crash may have left there. */
const PARTS = [0, 1]

const ORDERED_LINE = 0
/** Rows that join the ordered line or the queues later: at a date, or, if ordered, after a delay. */
const JOINING = 1

/** Skips from lane to lane through the index: a lane with a million rows costs as much as a lane with one. */
export function scanLanes(context: Context, after: string | null, limit: number, at?: Moment): LaneWake[] {
  const next = context.connection.sql(`
    SELECT webhook_id, app_id, (SELECT url FROM endpoints WHERE id = webhook_id) AS url,
           (SELECT min(max(coalesce(hold_until, 0), coalesce(breaker_until, 0)), 8640000000000000) FROM endpoints WHERE id = webhook_id AND deleted_at IS NULL) AS opens_at
      FROM webhook_deliveries INDEXED BY deliveries_live
     WHERE ${LIVE} AND handed = ? AND webhook_id > ? ORDER BY webhook_id LIMIT 1`)
  const lanes: LaneWake[] = []
  let endpointId = after ?? ""
  while (lanes.length < limit) {
    const found = PARTS.map((part) => next.get(part, endpointId)).filter((row) => row !== undefined)
    const [row] = found.sort((a, b) => (a.webhook_id! < b.webhook_id! ? -1 : 1))
    if (row === undefined) break
    endpointId = row.webhook_id as string
    lanes.push({
      endpointId,
      appId: row.app_id as string,
      dueAt: Math.max(earliestDue(context, endpointId, at), (row.opens_at as number | null) ?? 0),
      transport: transportOf((row.url as string | null) ?? ""),
    })
  }
  return lanes
}

function earliestDue(context: Context, endpointId: string, at: Moment | undefined): number {
  const dues = queues(context, endpointId).map(({ rank, dueAt }) => {
    if (rank === JOINING && at !== undefined) return nextJoin(context, endpointId, at) ?? dueAt
    return rank === ORDERED_LINE ? dueOf(lineHead(context, endpointId)) : dueAt
  })
  return Math.min(...dues)
}

export function fetch(context: Context, lane: LaneFetch, inHand: number, at: Moment): FetchedLane {
  const fetched = fetchLane(context, lane, inHand, at)
  // So that a later fetch does not return them again, and a settle under an older token is stale.
  context.claims.flush()
  return fetched
}

function fetchLane(context: Context, lane: LaneFetch, inHand: number, at: Moment): FetchedLane {
  const { endpointId } = lane
  const { now } = at
  const state = context.connection
    .sql(
      "SELECT version, ordered, disabled, paused, deleted_at IS NOT NULL AS deleted, hold_until, breaker_until, protection, gate_epoch, gate_token, gate_revision FROM endpoints WHERE id = ?",
    )
    .get(endpointId)
  context.openLanes.close(endpointId)
  const gate = toLoadedGate(state ?? MISSING)
  const idle = {
    endpoint: null,
    // The file's only owner cannot lose a claim.
    lost: false,
    gate,
    deliveries: [],
    nextDueAt: null,
    open: false,
  }
  const { deleted } = gate
  if (state === undefined || (!deleted && closedBy(gate, now) !== null)) return idle

  const endpoint = state.version === lane.knownVersion ? null : readEndpoint(context, endpointId)
  const before = queues(context, endpointId)
  const joins = before.some(({ rank }) => rank === JOINING)
  if (joins) join(context, endpointId, at)
  const waiting = (joins ? queues(context, endpointId) : before).filter(({ rank }) => rank !== JOINING)
  const ordered = waiting.some(({ rank }) => rank === ORDERED_LINE)
  const taken = ordered ? fetchOrdered(context, lane, now) : fetchUnordered(context, lane, waiting, now)
  const found = joins
    ? { ...taken, nextDueAt: earliest([taken.nextDueAt, nextJoin(context, endpointId, at)]) }
    : taken
  const isOrdered = ordered || state.ordered === 1
  const places = lane.handoffPlaces
  const open = places > 0 && !isOrdered && !deleted && !isDue(found.nextDueAt, now)
  if (open) {
    const { length } = found.deliveries
    context.openLanes.open(endpointId, {
      token: lane.token,
      places,
      inHand: inHand + length,
      starting: lane.starting - length,
    })
  }
  return { ...idle, endpoint, open, ...found }
}

/** A lane that a later claim opened stays open. */
export function closeLane({ openLanes }: Context, endpointId: string, token: number): void {
  openLanes.closeIfToken(endpointId, token)
}

function isDue(dueAt: number | null, now: number): boolean {
  return dueAt !== null && dueAt <= now
}

interface Found {
  readonly deliveries: ClaimedDelivery[]
  readonly nextDueAt: number | null
}

interface Queue {
  /** Parts of the index that have rows. */
  readonly parts: readonly number[]
  readonly rank: number
  readonly dueAt: number
}

/** Queues with waiting rows, by rank, with their earliest due time: one probe for each. */
function queues({ connection }: Context, endpointId: string): Queue[] {
  const next = connection.sql(`
    SELECT rank, ${DUE} AS due FROM webhook_deliveries INDEXED BY deliveries_live
     WHERE ${LIVE} AND handed = ? AND webhook_id = ? AND rank > ? ORDER BY rank, ${DUE} LIMIT 1`)
  const found = new Map<number, Queue>()
  for (const part of PARTS)
    for (let rank = -1; ; ) {
      const row = next.get(part, endpointId, rank)
      if (row === undefined) break
      rank = row.rank as number
      const { parts, dueAt } = found.get(rank) ?? { parts: [], dueAt: Number.POSITIVE_INFINITY }
      found.set(rank, { rank, parts: [...parts, part], dueAt: Math.min(dueAt, row.due as number) })
    }
  return [...found.values()].sort((a, b) => a.rank - b.rank)
}

function fetchUnordered(context: Context, lane: LaneFetch, waiting: readonly Queue[], now: number): Found {
  const due = waiting.filter(({ dueAt }) => dueAt <= now)
  const found = new Map<Queue, Row[]>()
  let count = 0
  let retries = 0
  const look = (queue: Queue, most: number) => {
    const isRetry = isRetryRank(queue.rank)
    const room = Math.min(most - count, isRetry ? lane.retries - retries : most)
    if (room <= 0) return
    const before = found.get(queue)?.length ?? 0
    const rows = dueRows(context, lane, queue, now, before + room)
    found.set(queue, rows)
    count += rows.length - before
    if (isRetry) retries += rows.length - before
  }
  for (const queue of due) if (isRetryRank(queue.rank)) look(queue, lane.retryShare)
  for (const queue of due) look(queue, lane.limit)
  const deliveries: ClaimedDelivery[] = []
  // By rank, roughly the order in which they start: the first ones are recorded as started.
  for (const row of due.flatMap((queue) => found.get(queue) ?? [])) {
    const claimed = claimRow(context, row, lane.token, now, deliveries.length < lane.starting)
    if (claimed !== null) deliveries.push(claimed)
  }
  const passedOver = count - deliveries.length
  if (deliveries.length >= lane.limit || passedOver > 0) return { deliveries, nextDueAt: now }
  const next = waiting.map((queue) =>
    queue.dueAt > now ? queue.dueAt : firstDueAfter(context, lane.endpointId, queue, now),
  )
  return { deliveries, nextDueAt: earliest(next) }
}

/** Odd ranks from 3 on; see the generated column. */
function isRetryRank(rank: number): boolean {
  return rank % 2 === 1
}

/** Only the unfinished delivery with the lowest number is sent. */
function fetchOrdered(context: Context, lane: LaneFetch, now: number): Found {
  const head = lineHead(context, lane.endpointId)
  if (head === undefined || dueOf(head) > now)
    return { deliveries: [], nextDueAt: head === undefined ? null : dueOf(head) }
  // In hand: its settle is followed by another fetch. A retry that waits for its budget is fetched when the lane asks for retries again.
  if (head.claimed_by === lane.token || ((head.attempt_count as number) > 0 && lane.retries <= 0))
    return { deliveries: [], nextDueAt: null }
  const claimed = claimRow(context, head, lane.token, now, true)
  return claimed === null ? fetchOrdered(context, lane, now) : { deliveries: [claimed], nextDueAt: now }
}

/** Moves due rows into the ordered line or the queues, so that the head of the line is one probe away. */
function join({ connection }: Context, endpointId: string, { now, wall }: Moment): void {
  const due = connection.sql(`
    UPDATE webhook_deliveries
       SET deferred = 0, dated = 0, ordered = (SELECT ordered FROM endpoints WHERE id = ?1), next_retry_at = NULL,
           -- From the wall clock to the steady clock.
           age_from = age_from + iif(dated, ?2 - ?3, 0)
     WHERE seq IN (
       SELECT seq FROM webhook_deliveries INDEXED BY deliveries_live
        WHERE ${LIVE} AND handed = ?4 AND webhook_id = ?1 AND rank = ${JOINING} AND ${DUE} <= max(?2, ?3) AND ${DUE} <= iif(dated, ?3, ?2)
        ORDER BY ${DUE} LIMIT 1000
     )`)
  for (const part of PARTS) due.run(endpointId, now, wall, part)
}

/** On the steady clock. */
function nextJoin({ connection }: Context, endpointId: string, at: Moment): number | null {
  const first = connection.sql(`
    SELECT ${DUE} AS due FROM webhook_deliveries INDEXED BY deliveries_live
     WHERE ${LIVE} AND handed = ? AND webhook_id = ? AND rank = ${JOINING} AND dated = ? ORDER BY ${DUE} LIMIT 1`)
  const dueAt = (dated: number) =>
    earliest(PARTS.map((part) => (first.get(part, endpointId, dated)?.due as number | undefined) ?? null))
  const date = dueAt(1)
  return earliest([dueAt(0), date === null ? null : steadyTimeOf(date, at)])
}

/** Data of the requests for the deliveries that `found` selects. */
const claimable = (found: string, order: string) => `
  SELECT d.seq, d.id, d.message_id, d.session_id, d.event_type, d.target_url, d.status, d.attempt_count, d.max_attempts, d.next_retry_at,
         d.last_attempted_at, d.received_at, d.error_detail, d.age_from, d.stalls, d.manual, d.priority, m.payload, m.content_type, m.traceparent, m.inbound,
         f.token AS claimed_by, f.started_at AS claimed_at
    FROM (${found}) AS found
    CROSS JOIN webhook_deliveries d ON d.seq = found.seq
    LEFT JOIN messages m ON m.id = d.message_id
    LEFT JOIN in_flight f ON f.seq = d.seq
   ORDER BY ${order}`

const LINE_HEAD = claimable(
  `SELECT seq FROM webhook_deliveries INDEXED BY deliveries_line
    WHERE ${LIVE} AND rank < 1 AND webhook_id = ? ORDER BY seq LIMIT 1`,
  "found.seq",
)

// Rows in hand are skipped by the index and in_flight alone: a busy lane fetches often and has many of them.
// The limit is part of the text: with "LIMIT ?" SQLite prepares the statement at every call (50 µs against 6).
const dueRowsSql = (most: number) =>
  claimable(
    `SELECT w.seq, coalesce(w.next_retry_at, 0) AS due FROM webhook_deliveries w INDEXED BY deliveries_live
     LEFT JOIN in_flight i ON i.seq = w.seq
    WHERE w.${LIVE} AND w.handed = ? AND w.webhook_id = ? AND w.rank = ? AND coalesce(w.next_retry_at, 0) <= ? AND i.token IS NOT ?
      ORDER BY coalesce(w.next_retry_at, 0), w.seq LIMIT ${most}`,
    "found.due, found.seq",
  )

function lineHead({ connection }: Context, endpointId: string): Row | undefined {
  return connection.sql(LINE_HEAD).get(endpointId)
}

function dueRows(
  { connection }: Context,
  { endpointId, token }: LaneFetch,
  { parts, rank }: Queue,
  now: number,
  most: number,
): Row[] {
  const found = parts.map((part) => connection.sql(dueRowsSql(most)).all(part, endpointId, rank, now, token))
  if (found.length === 1) return found[0]!
  return found
    .flat()
    .sort((a, b) => dueOf(a) - dueOf(b) || (a.seq as number) - (b.seq as number))
    .slice(0, most)
}

function firstDueAfter(
  { connection }: Context,
  endpointId: string,
  { parts, rank }: Pick<Queue, "parts" | "rank">,
  now: number,
): number | null {
  const next = connection.sql(`
    SELECT ${DUE} AS due FROM webhook_deliveries INDEXED BY deliveries_live
     WHERE ${LIVE} AND handed = ? AND webhook_id = ? AND rank = ? AND ${DUE} > ? ORDER BY ${DUE} LIMIT 1`)
  return earliest(parts.map((part) => (next.get(part, endpointId, rank, now)?.due as number) ?? null))
}

/** Records the claim. A claim of an earlier token becomes an attempt of unknown outcome. */
function claimRow(
  context: Context,
  row: Row,
  token: number,
  now: number,
  starts: boolean,
): ClaimedDelivery | null {
  const delivery = row.claimed_by === null ? toClaimed(row) : takeOver(context, row, now)
  if (delivery !== null) claim(context, delivery.seq, token, now, starts)
  return delivery
}

export function claim({ claims }: Context, seq: number, token: number, now: number, starts: boolean): void {
  claims.add(seq, token, starts ? now : -now)
}

/** Null for a delivery that was in hand at several crashes: it waits before its next attempt. */
function takeOver(context: Context, row: Row, now: number): ClaimedDelivery | null {
  const delivery = toClaimed(row)
  // A delivery that was claimed without being started may have been sent since: it is logged, but does not count as a stall.
  const claimedAt = row.claimed_at as number
  const stalls = delivery.stalls + (claimedAt > 0 ? 1 : 0)
  const waitMs = claimedAt > 0 ? (STALL_WAITS_MS[stalls] ?? 0) : 0
  const dueAt = waitMs > 0 ? now + waitMs : delivery.nextRetryAt
  if (claimedAt > 0)
    context.connection
      .sql("UPDATE webhook_deliveries SET stalls = ?, next_retry_at = ? WHERE seq = ?")
      .run(stalls, dueAt, delivery.seq)
  insertAttempt(context, delivery.seq, {
    id: context.ids.make("atmpt", now),
    status: "unknown",
    manual: delivery.manual,
    attemptNumber: delivery.attemptCount + 1,
    url: row.target_url as string,
    responseStatus: null,
    responseBody: null,
    responseTruncated: false,
    error: "the worker stopped before it wrote down how this attempt ended",
    startedAt: Math.abs(claimedAt),
    durationMs: 0,
    timing: null,
  })
  if (waitMs === 0) return { ...delivery, stalls }
  context.connection.sql("DELETE FROM in_flight WHERE seq = ?").run(delivery.seq)
  return null
}

function dueOf(row: Row | undefined): number {
  return (row?.next_retry_at as number | null | undefined) ?? 0
}

function earliest(times: readonly (number | null)[]): number | null {
  const known = times.filter((time) => time !== null)
  return known.length === 0 ? null : Math.min(...known)
}

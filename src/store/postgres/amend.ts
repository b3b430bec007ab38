/** Changes of deliveries without an attempt: an operator's, or the end of their endpoint. */
import type { Change } from "../../core/settle.ts"
import { GIVEN_UP } from "../rollups.ts"
import { type Statement, statement } from "../statements.ts"
import type { Amendment } from "../store.ts"
import type { Runner } from "./connection.ts"
import type { Context, Operation } from "./context.ts"
import { isMissingPartition } from "./errors.ts"
import { purgeDay } from "./partitions.ts"
import { rollUpGivenUp } from "./rollups.ts"
import { LIVE_DAY } from "./schema.ts"
import { Columns } from "./statement.ts"

const TRIES = 3

type Changing = Amendment & { readonly change: Change }
type Discarding = Amendment & { readonly change: { readonly discardedAt: number } }

const CHANGES = new Columns<Changing>({
  seq: ["bigint", ({ seq }) => seq],
  expected_status: ["text", ({ expectedStatus }) => expectedStatus],
  expected_count: ["int", ({ expectedAttemptCount }) => expectedAttemptCount],
  status: ["text", ({ change }) => change.status],
  dead_reason: ["text", ({ change }) => change.deadReason],
  attempt_count: ["int", ({ change }) => change.attemptCount],
  next_retry_at: ["bigint", ({ change }) => change.nextRetryAt],
  last_attempted_at: ["bigint", ({ change }) => change.lastAttemptedAt],
  delivered_at: ["bigint", ({ change }) => change.deliveredAt],
  dead_at: ["bigint", ({ change }) => change.deadAt],
  error_detail: ["text", ({ change }) => change.errorDetail],
  age_from: ["bigint", ({ change }) => change.ageFrom],
  stalls: ["int", ({ change }) => change.stalls],
  manual: ["bool", ({ change }) => change.manual],
  purge_at: ["bigint", ({ change }) => change.purgeAt],
  purge_day: ["int", ({ change }) => dayOf(change)],
})

/**
 * Changes deliveries that have the expected state, moves their attempts to the same partition, and wakes the lanes. `d.seq = ANY ($1)` repeats
 * the join's condition, since the planner reads whole days for the join alone (500 ms at 500 000 rows, against 30).
 */
const change = (name: string, where: string) =>
  statement(
    name,
    `
WITH changed AS (
  UPDATE webhook_deliveries d
     SET status = x.status, dead_reason = x.dead_reason, attempt_count = x.attempt_count, next_retry_at = x.next_retry_at,
         last_attempted_at = x.last_attempted_at, delivered_at = x.delivered_at, dead_at = x.dead_at,
         error_detail = CASE WHEN x.status = 'delivered' THEN NULL ELSE coalesce(x.error_detail, d.error_detail) END,
         age_from = x.age_from, stalls = x.stalls, manual = x.manual, purge_at = x.purge_at, purge_day = x.purge_day,
         discarded_at = NULL, dated = false,
         handed_token = CASE WHEN x.status IN ('pending', 'failed') THEN d.handed_token END
    FROM ${CHANGES.unnest("x")}
   WHERE d.seq = x.seq AND d.seq = ANY ($1) AND d.status = x.expected_status AND d.attempt_count = x.expected_count AND ${where}
  RETURNING x.ord, d.id, d.webhook_id, d.status, d.purge_day, d.app_id, d.event_type, d.attempt_count, d.dead_reason, d.dead_at
),
${rollUpGivenUp("changed", GIVEN_UP)},
moved AS (
  UPDATE attempts a SET purge_day = c.purge_day
    FROM changed c
   WHERE a.delivery_id = c.id AND a.purge_day = ${LIVE_DAY} AND c.status IN ('delivered', 'dead')
),
woken AS (
  INSERT INTO lane_wakes (lane_id, due_at) SELECT DISTINCT webhook_id, 0 FROM changed
)
SELECT ord FROM changed`,
  )
/** Two statements: one over all partitions would search live deliveries among the finished ones, too. */
const CHANGE_LIVE = change("amend.live", "d.status IN ('pending', 'failed')")
const CHANGE_DONE = change("amend.done", "d.status IN ('delivered', 'dead')")

const DISCARDS = new Columns<Discarding>({
  seq: ["bigint", ({ seq }) => seq],
  discarded_at: ["bigint", ({ change }) => change.discardedAt],
})
const DISCARD = statement(
  "amend.discard",
  `UPDATE webhook_deliveries d SET discarded_at = x.discarded_at
     FROM ${DISCARDS.unnest("x")}
    WHERE d.seq = x.seq AND d.seq = ANY ($1) AND d.status = 'dead' AND d.discarded_at IS NULL
   RETURNING x.ord`,
)

export const amendIfUnchanged: Operation<"amendIfUnchanged"> = (context, amendments) =>
  withTheirDays(context, amendments, () =>
    context.database.transaction((runner) => amendWithin(runner, amendments)),
  )

/** Creates the partitions of finished deliveries, and again if another process drops one meanwhile. */
export async function withTheirDays<T>(
  { partitions }: Context,
  amendments: readonly Amendment[],
  work: () => Promise<T>,
): Promise<T> {
  const days = new Set(amendments.filter(isChange).map(({ change }) => dayOf(change)))
  for (let left = TRIES; ; left--) {
    await partitions.ensureDays(days)
    try {
      return await work()
    } catch (error) {
      if (left === 1 || !isMissingPartition((error as Error).cause)) throw error
      partitions.forget()
    }
  }
}

/** In a transaction of the caller's, after `withTheirDays`. */
export async function amendWithin(runner: Runner, amendments: readonly Amendment[]): Promise<boolean[]> {
  const applied = new Set<Amendment>()
  const run = async <A extends Amendment>(statement: Statement, columns: Columns<A>, of: readonly A[]) => {
    if (of.length === 0) return
    for (const { ord } of await runner.run(statement, columns.values(of)))
      applied.add(of[(ord as number) - 1]!)
  }
  const { live = [], done = [] } = Object.groupBy(amendments.filter(isChange), lifeExpectedBy)
  await run(CHANGE_LIVE, CHANGES, live)
  await run(CHANGE_DONE, CHANGES, done)
  await run(DISCARD, DISCARDS, amendments.filter(isDiscard))
  return amendments.map((one) => applied.has(one))
}

function isChange(amendment: Amendment): amendment is Changing {
  return !isDiscard(amendment)
}

function isDiscard(amendment: Amendment): amendment is Discarding {
  return "discardedAt" in amendment.change
}

function lifeExpectedBy({ expectedStatus }: Amendment): "live" | "done" {
  return expectedStatus === "pending" || expectedStatus === "failed" ? "live" : "done"
}

/** A change has no time of its own; its latest time is the best estimate. */
function dayOf({ purgeAt, ageFrom, lastAttemptedAt }: Change): number {
  return purgeDay(purgeAt, Math.max(ageFrom, lastAttemptedAt ?? 0))
}

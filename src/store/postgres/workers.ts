/** Workers: the processes that deliver, by their leases. */
import { statement } from "../statements.ts"
import type { Operation } from "./context.ts"

/** Lanes by their owner, through the index lanes_owned. A reaped worker has a lease until '-infinity'. */
const LIST = statement(
  "workers.list",
  `
    SELECT w.id::text, w.name, w.lease_until > clock_timestamp() AS alive,
           CASE WHEN w.lease_until > '-infinity' THEN floor(extract(epoch FROM w.lease_until) * 1000)::bigint END AS alive_until,
           held.lanes, held.in_hand
      FROM workers w
      CROSS JOIN LATERAL (
        SELECT count(*) AS lanes, coalesce(sum(cardinality(l.sending)), 0)::bigint AS in_hand
          FROM lanes l JOIN endpoints e ON e.id = l.id
         WHERE l.owner = w.id AND l.owner <> 0 AND e.org_id = $1
      ) held
     ORDER BY w.id`,
)

export const listWorkers: Operation<"listWorkers"> = async ({ database }, orgId) =>
  (await database.run(LIST, [orgId])).map((row) => ({
    id: row.id as string,
    name: row.name as string,
    alive: row.alive as boolean,
    aliveUntil: row.alive_until as number | null,
    lanes: row.lanes as number,
    inHand: row.in_hand as number,
  }))

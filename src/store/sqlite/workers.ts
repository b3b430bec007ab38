/** Workers: on a file there is one, the process that owns it. */
import type { Operation } from "./context.ts"
import { isOwned, selfName } from "./owner.ts"

/** Deliveries in hand of a process that has ended are still counted, until its successor finds them. */
const HELD = `
  SELECT count(*) AS in_hand, count(DISTINCT d.webhook_id) AS lanes
    FROM in_flight f
    JOIN webhook_deliveries d ON d.seq = f.seq
    JOIN endpoints e ON e.id = d.webhook_id
   WHERE e.org_id = ?`

export const listWorkers: Operation<"listWorkers"> = ({ connection }, orgId) => {
  const file = connection.db.location()
  // A database in memory belongs to its process.
  const name =
    file === null ? selfName() : connection.sql("SELECT value FROM meta WHERE key = 'owner'").get()?.value
  if (typeof name !== "string") return []
  const held = connection.sql(HELD).get(orgId)!
  return [
    {
      id: "owner",
      name,
      alive: file === null || isOwned(file),
      aliveUntil: null,
      lanes: held.lanes as number,
      inHand: held.in_hand as number,
    },
  ]
}

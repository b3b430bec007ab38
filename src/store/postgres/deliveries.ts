/** Deliveries: reading and counting them. */
import { ofDeliveries, oldestFirst, paging } from "../conditions.ts"
import { orNull, toDeadGroup, toDelivery, toStatusCounts } from "../rows.ts"
import { countByStatusOf, groupDeadOf, statement } from "../statements.ts"
import type { Delivery, DeliveryFilter, Page } from "../store.ts"
import { POSTGRES } from "./conditions.ts"
import type { Context, Operation } from "./context.ts"
import { readAll } from "./page.ts"

const GET = statement(
  "deliveries.get",
  `SELECT * FROM webhook_deliveries d
    WHERE d.id = $2 AND EXISTS (SELECT FROM applications o WHERE o.id = d.app_id AND o.org_id = $1)`,
)

export const getDelivery: Operation<"getDelivery"> = async ({ database }, orgId, id) =>
  orNull((await database.run(GET, [orgId, id]))[0], toDelivery)

export const listDeliveries: Operation<"listDeliveries"> = (context, filter, page) =>
  read(context, filter, page)

/** For tasks: the oldest deliveries after the cursor. */
export function rangeOfDeliveries(
  context: Context,
  filter: DeliveryFilter,
  after: number,
  upTo: number,
  limit: number,
): Promise<Delivery[]> {
  return read(context, filter, oldestFirst(after, limit), upTo)
}

/**
 * Reads live and finished rows separately. Over all partitions at once, the planner expects to find enough rows in a small part of each, and
 * reads everybody's live deliveries by number in search of one endpoint's (90 ms at 300 000 live, against 3).
 */
async function read(
  context: Context,
  filter: DeliveryFilter,
  page: Page,
  upTo?: number,
): Promise<Delivery[]> {
  const where = ofDeliveries(POSTGRES, filter).narrow("d.seq <= ?", upTo)
  const { direction, limit, arrange } = paging(where, "d.seq", page)
  // A message has few deliveries: they are found by it and then sorted, also in a new day's table, which has no statistics yet.
  const order = `${filter.messageId === undefined ? "d.seq" : "d.seq + 0"} ${direction}`
  const parts = tablesOf(filter).map(
    (table) => `(SELECT * FROM ${table} d WHERE ${where} ORDER BY ${order} LIMIT ${limit})`,
  )
  const text = `SELECT * FROM (${parts.join(" UNION ALL ")}) found ORDER BY seq ${direction} LIMIT ${limit}`
  return arrange(await readAll(context, text, where)).map(toDelivery)
}

function tablesOf({ status, live, calledOff }: DeliveryFilter): readonly string[] {
  if (live || status === "pending" || status === "failed") return ["webhook_deliveries_live"]
  if (status !== undefined || calledOff !== undefined) return ["webhook_deliveries_done"]
  return ["webhook_deliveries_live", "webhook_deliveries_done"]
}

export const countDeliveries: Operation<"countDeliveries"> = async (context, filter) => {
  const where = ofDeliveries(POSTGRES, filter)
  const [row] = await readAll(context, `SELECT count(*) AS n FROM webhook_deliveries d WHERE ${where}`, where)
  return row!.n as number
}

export const countByStatus: Operation<"countByStatus"> = async (context, filter) => {
  const where = ofDeliveries(POSTGRES, filter)
  return toStatusCounts(await readAll(context, countByStatusOf(where), where))
}

export const groupDead: Operation<"groupDead"> = async (context, filter, limit) => {
  const where = ofDeliveries(POSTGRES, filter)
  return (await readAll(context, groupDeadOf(where, limit), where)).map(toDeadGroup)
}

/** Deliveries: reading and counting them. */
import { type Conditions, ofDeliveries, oldestFirst, paging } from "../conditions.ts"
import { orNull, toDeadGroup, toDelivery, toStatusCounts } from "../rows.ts"
import { countByStatusOf, groupDeadOf, statement } from "../statements.ts"
import type { Delivery, DeliveryFilter, Page } from "../store.ts"
import { POSTGRES } from "./conditions.ts"
import type { Context, Operation } from "./context.ts"
import { readAll } from "./page.ts"
import { selectIndexed, tablesOf } from "./search-bound.ts"

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
  const parts = partsOf(filter, where, direction).map(
    ({ from, order }) => `(SELECT * FROM ${from} d WHERE ${where} ORDER BY ${order} LIMIT ${limit})`,
  )
  const text = `SELECT * FROM (${parts.join(" UNION ALL ")}) found ORDER BY seq ${direction} LIMIT ${limit}`
  return arrange(await readAll(context, text, where)).map(toDelivery)
}

interface Part {
  readonly from: string
  readonly order: string
}

/** Tables; of a bounded search, the rows of their indexes, behind a fence: the planner may not test other conditions first. */
function partsOf(filter: DeliveryFilter, where: Conditions<unknown>, direction: string): readonly Part[] {
  const { rows, messageId } = filter
  return tablesOf(filter).map((table): Part => {
    // A message has few deliveries: they are found by it and then sorted, also in a new day's table, which has no statistics yet.
    const isSorted =
      messageId !== undefined ||
      (rows !== undefined && rows.few !== null && table === "webhook_deliveries_live")
    const order = `${isSorted ? "d.seq + 0" : "d.seq"} ${direction}`
    if (rows === undefined) return { from: table, order }
    const inside = where.sibling().rows("d.seq", rows)
    const from = `(SELECT * FROM (${selectIndexed(where, table, filter)}) d WHERE ${inside} ORDER BY ${order} OFFSET 0)`
    return { from, order }
  })
}

/** For counts and groups. */
function fromOf(filter: DeliveryFilter, where: Conditions<unknown>): string {
  if (filter.rows === undefined) return "webhook_deliveries d"
  const parts = partsOf(filter, where, "DESC").map(({ from }) => `SELECT * FROM ${from} part`)
  return `(${parts.join(" UNION ALL ")}) d`
}

export const countDeliveries: Operation<"countDeliveries"> = async (context, filter) => {
  const where = ofDeliveries(POSTGRES, filter)
  const text = `SELECT count(*) AS n FROM ${fromOf(filter, where)} WHERE ${where}`
  const [row] = await readAll(context, text, where)
  return row!.n as number
}

export const countByStatus: Operation<"countByStatus"> = async (context, filter) => {
  const where = ofDeliveries(POSTGRES, filter)
  return toStatusCounts(await readAll(context, countByStatusOf(where, fromOf(filter, where)), where))
}

export const groupDead: Operation<"groupDead"> = async (context, filter, limit, by = "error") => {
  const where = ofDeliveries(POSTGRES, filter)
  const text = groupDeadOf(where, limit, by, fromOf(filter, where))
  return (await readAll(context, text, where)).map(toDeadGroup)
}

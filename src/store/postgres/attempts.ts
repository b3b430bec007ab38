/** The log of attempts: reading it, and taking an answer out of it. */
import { type Row, toAttempt, toAttemptCounts } from "../rows.ts"
import type { Attempt, AttemptCounts, AttemptFilter, Page } from "../store.ts"
import { Conditions, responseClassOf, throughMessage, unprepared } from "./conditions.ts"
import type { Context } from "./context.ts"
import { paging, readPage } from "./page.ts"
import type { Statement } from "./statement.ts"

/** As an array, so that the log is looked up by it; with IN the whole log was read (211 ms at 800 000 attempts, against 7). */
const ofMessage = (parameter: string) =>
  `a.delivery_id = ANY (ARRAY(SELECT id FROM webhook_deliveries WHERE message_id = ${parameter}))`

function conditions(filter: AttemptFilter): Conditions {
  return new Conditions()
    .tenant(filter.orgId, "endpoints", "a.webhook_id")
    .narrow("a.delivery_id = ?", filter.deliveryId)
    .narrow("a.webhook_id = ?", filter.endpointId)
    .narrow(ofMessage("?"), filter.messageId)
    .narrow("a.status = ANY (?)", filter.statuses)
    .narrow(`${responseClassOf("a")} = ?`, filter.responseClass)
    .content(filter, throughMessage("a.message_id"))
    .span("a.started_at", filter)
}

export async function listAttempts(context: Context, filter: AttemptFilter, page: Page): Promise<Attempt[]> {
  const where = conditions(filter)
  const { appId } = filter
  const rows =
    appId === undefined
      ? await readPage(context, "SELECT * FROM attempts a", where, "a.seq", page)
      : await ofEveryEndpoint(context, appId, where, page)
  return rows.map(toAttempt)
}

/** Endpoint by endpoint, through their index: by number alone, a quiet application would be looked for among everybody's attempts. */
async function ofEveryEndpoint(
  { database }: Context,
  appId: string,
  where: Conditions,
  page: Page,
): Promise<Row[]> {
  const { direction, most, arrange } = paging(where, "a.seq", page)
  const text = `
    SELECT found.*
      FROM endpoints e
      CROSS JOIN LATERAL (
        SELECT * FROM attempts a WHERE a.webhook_id = e.id AND ${where} ORDER BY a.seq ${direction} LIMIT ${most}
      ) found
     WHERE e.app_id = ${where.parameter(appId)} ORDER BY found.seq ${direction} LIMIT ${most}`
  return arrange(await database.runCalmly(unprepared(text), where.values))
}

const OF_LANES = "a.webhook_id = ANY (ARRAY(SELECT id FROM endpoints WHERE app_id = ?))"

/** By endpoint through the index `attempts_endpoint`. */
export async function countAttempts({ database }: Context, filter: AttemptFilter): Promise<AttemptCounts> {
  const where = conditions(filter).narrow(OF_LANES, filter.appId)
  const text = `SELECT a.status, count(*) AS n FROM attempts a WHERE ${where} GROUP BY a.status`
  return toAttemptCounts(await database.runCalmly(unprepared(text), where.values))
}

const GET: Statement = {
  name: "attempts.get",
  text: `SELECT * FROM attempts a WHERE ${ofMessage("$1")} AND a.id = $2`,
}

export async function getAttempt(
  { database }: Context,
  messageId: string,
  id: string,
): Promise<Attempt | null> {
  const [row] = await database.run(GET, [messageId, id])
  return row === undefined ? null : toAttempt(row)
}

const EXPUNGE: Statement = {
  name: "attempts.expunge",
  text: `
    UPDATE attempts a SET response_body = convert_to('EXPUNGED', 'UTF8'), response_truncated = false
     WHERE ${ofMessage("$1")} AND a.id = $2`,
}

export async function expungeAttempt({ database }: Context, messageId: string, id: string): Promise<void> {
  await database.run(EXPUNGE, [messageId, id])
}

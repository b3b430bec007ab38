/** The log of attempts: reading it, and removing a response from it. */
import { Conditions, ofAttempts, ofMessageId, paging } from "../conditions.ts"
import { orNull, type Row, toAttempt, toAttemptCounts, toStatusCodeCount } from "../rows.ts"
import { countAttemptsOf, countStatusCodesOf, statement } from "../statements.ts"
import type { Page } from "../store.ts"
import { POSTGRES } from "./conditions.ts"
import type { Context, Operation } from "./context.ts"
import { readAll, readPage } from "./page.ts"

export const listAttempts: Operation<"listAttempts"> = async (context, filter, page) => {
  const where = ofAttempts(POSTGRES, filter)
  const { appId } = filter
  const rows =
    appId === undefined
      ? await readPage(context, "SELECT * FROM attempts a", where, "a.seq", page)
      : await ofEveryEndpoint(context, appId, where, page)
  return rows.map(toAttempt)
}

/** Endpoint by endpoint, through their index: by number alone, a quiet application would be searched for among everybody's attempts. */
async function ofEveryEndpoint(
  context: Context,
  appId: string,
  where: Conditions<unknown>,
  page: Page,
): Promise<Row[]> {
  const { direction, limit, arrange } = paging(where, "a.seq", page)
  const text = `
    SELECT found.*
      FROM endpoints e
      CROSS JOIN LATERAL (
        SELECT * FROM attempts a WHERE a.webhook_id = e.id AND ${where} ORDER BY a.seq ${direction} LIMIT ${limit}
      ) found
     WHERE e.app_id = ${where.parameter(appId)} ORDER BY found.seq ${direction} LIMIT ${limit}`
  return arrange(await readAll(context, text, where))
}

/** By endpoint through the index `attempts_endpoint`. */
export const countAttempts: Operation<"countAttempts"> = async (context, filter) => {
  const ofApplication = POSTGRES.oneOfQuery("a.webhook_id", "SELECT id FROM endpoints WHERE app_id = ?")
  const where = ofAttempts(POSTGRES, filter).narrow(ofApplication, filter.appId)
  return toAttemptCounts(await readAll(context, countAttemptsOf(where), where))
}

export const countStatusCodes: Operation<"countStatusCodes"> = async (
  context,
  { endpointId, ...span },
  newest,
) => {
  const where = new Conditions(POSTGRES)
  const rows = `
    SELECT * FROM attempts WHERE webhook_id = ${where.parameter(endpointId)} ORDER BY seq DESC LIMIT ${where.parameter(newest)}`
  const text = countStatusCodesOf(rows, where.span("a.started_at", span))
  return (await readAll(context, text, where)).map(toStatusCodeCount)
}

const OF_MESSAGE = ofMessageId(POSTGRES, "$1")
const GET = statement("attempts.get", `SELECT * FROM attempts a WHERE ${OF_MESSAGE} AND a.id = $2`)

export const getAttempt: Operation<"getAttempt"> = async ({ database }, messageId, id) =>
  orNull((await database.run(GET, [messageId, id]))[0], toAttempt)

const EXPUNGE = statement(
  "attempts.expunge",
  `UPDATE attempts a SET response_body = convert_to('EXPUNGED', 'UTF8'), response_truncated = false
    WHERE ${OF_MESSAGE} AND a.id = $2`,
)

export const expungeAttempt: Operation<"expungeAttempt"> = async ({ database }, messageId, id) => {
  await database.run(EXPUNGE, [messageId, id])
}

/** The log of attempts. */
import { NEW_ATTEMPT } from "../columns.ts"
import { Conditions, ofAttempts, ofMessageId } from "../conditions.ts"
import type { Fence } from "../fence.ts"
import { orNull, toAttempt, toAttemptCounts, toStatusCodeCount } from "../rows.ts"
import { countAttemptsOf, countStatusCodesOf } from "../statements.ts"
import type { Attempt, AttemptFilter, NewAttempt, Page } from "../store.ts"
import { SQLITE } from "./conditions.ts"
import type { Context, Operation } from "./context.ts"
import { readAll, readPage } from "./page.ts"
import { eraOf } from "./schema.ts"

/** For a delivery whose row exists; written with the other attempts of the transaction. */
export function addAttempt(
  { attempts }: Context,
  { deliveryId, endpointId, messageId }: Fence,
  attempt: NewAttempt,
): void {
  attempts.add(attempt.id, deliveryId, endpointId, messageId, ...outcomeOf(attempt))
}

/** Takes the ids from the delivery's row: without that row, the attempt is not kept. Whether it was kept. */
export function insertAttempt({ connection }: Context, deliverySeq: number, attempt: NewAttempt): boolean {
  const { changes } = connection
    .sql(`
      INSERT INTO attempts (${NEW_ATTEMPT})
      SELECT ?, id, webhook_id, message_id, ?, ?, ?, ?, ?, CAST(? AS BLOB), ?, ?, ?, ?, ? FROM webhook_deliveries WHERE seq = ?`)
    .run(attempt.id, ...outcomeOf(attempt), deliverySeq)
  return changes === 1
}

function outcomeOf(attempt: NewAttempt) {
  return [
    attempt.attemptNumber,
    Number(attempt.manual),
    attempt.status,
    attempt.url,
    attempt.responseStatus,
    attempt.responseBody,
    Number(attempt.responseTruncated),
    attempt.error,
    attempt.startedAt,
    attempt.durationMs,
    attempt.timing,
  ] as const
}

function conditions(filter: AttemptFilter): Conditions<string | number> {
  const ofApplication = "EXISTS (SELECT 1 FROM endpoints o WHERE o.id = a.webhook_id AND o.app_id = ?)"
  return ofAttempts(SQLITE, filter).narrow(ofApplication, filter.appId)
}

export const listAttempts: Operation<"listAttempts"> = (context, filter, page) => {
  const { appId, ...rest } = filter
  const isOfApplication = (filter.endpointId ?? filter.deliveryId ?? filter.messageId) === undefined
  return appId !== undefined && isOfApplication
    ? ofEveryEndpoint(context, appId, rest, page)
    : readAttempts(context, filter, page)
}

/** Endpoint by endpoint, through their index: by number alone, a quiet application would be searched for among everybody's attempts. */
function ofEveryEndpoint(context: Context, appId: string, filter: AttemptFilter, page: Page): Attempt[] {
  const endpoints = context.connection.sql("SELECT id FROM endpoints WHERE app_id = ?").all(appId)
  const found = endpoints.flatMap(({ id }) =>
    readAttempts(context, { ...filter, endpointId: id as string }, page),
  )
  found.sort((a, b) => (page.order === "ascending" ? a.seq - b.seq : b.seq - a.seq))
  return page.back ? found.slice(-page.limit) : found.slice(0, page.limit)
}

function readAttempts(context: Context, filter: AttemptFilter, page: Page): Attempt[] {
  const inEras = filter.endpointId !== undefined && (filter.deliveryId ?? filter.messageId) === undefined
  const select = "SELECT a.* FROM attempts a"
  return readPage(context, select, conditions(filter), "a.seq", page, inEras).map(toAttempt)
}

/** By endpoint through the index `attempts_endpoint`. */
export const countAttempts: Operation<"countAttempts"> = (context, filter) => {
  const where = conditions(filter)
  return toAttemptCounts(readAll(context, countAttemptsOf(where), where))
}

/** In the order of the index `attempts_endpoint`, which SQLite skips through from era to era. */
export const countStatusCodes: Operation<"countStatusCodes"> = (context, { endpointId, ...span }, newest) => {
  const where = new Conditions(SQLITE)
  const rows = `
    SELECT * FROM attempts WHERE webhook_id = ${where.parameter(endpointId)}
     ORDER BY ${eraOf("seq")} DESC, seq DESC LIMIT ${where.parameter(newest)}`
  return readAll(context, countStatusCodesOf(rows, where.span("a.started_at", span)), where).map(
    toStatusCodeCount,
  )
}

const OF_MESSAGE = ofMessageId(SQLITE)

export const getAttempt: Operation<"getAttempt"> = ({ connection }, messageId, id) =>
  orNull(
    connection.sql(`SELECT a.* FROM attempts a WHERE ${OF_MESSAGE} AND a.id = ?`).get(messageId, id),
    toAttempt,
  )

export const expungeAttempt: Operation<"expungeAttempt"> = ({ connection }, messageId, id) => {
  connection
    .sql(`
      UPDATE attempts AS a SET response_body = CAST('EXPUNGED' AS BLOB), response_truncated = 0
       WHERE ${OF_MESSAGE} AND a.id = ?`)
    .run(messageId, id)
}

/** The log of attempts. */
import type { Fence } from "../fence.ts"
import { toAttempt, toAttemptCounts } from "../rows.ts"
import type { Attempt, AttemptCounts, AttemptFilter, NewAttempt, Page } from "../store.ts"
import { asList, Conditions, responseClassOf, throughMessage } from "./conditions.ts"
import type { Context } from "./context.ts"
import { readPage } from "./page.ts"

/** Of a row that is known to be there, with those of the same transaction. */
export function addAttempt(
  { attempts }: Context,
  { deliveryId, endpointId, messageId }: Fence,
  attempt: NewAttempt,
): void {
  attempts.add(attempt.id, deliveryId, endpointId, messageId, ...outcomeOf(attempt))
}

/** Takes the ids from the delivery's row: an attempt of a row that is gone is not kept. */
export function insertAttempt({ connection }: Context, deliverySeq: number, attempt: NewAttempt): void {
  connection
    .sql(`
      INSERT INTO attempts (
        id, delivery_id, webhook_id, message_id, attempt_number, manual, status, url, response_status, response_body,
        response_truncated, error, started_at, duration_ms
      ) SELECT ?, id, webhook_id, message_id, ?, ?, ?, ?, ?, CAST(? AS BLOB), ?, ?, ?, ? FROM webhook_deliveries WHERE seq = ?`)
    .run(attempt.id, ...outcomeOf(attempt), deliverySeq)
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
  ] as const
}

/** The table has no index by message: it leads there through the message's deliveries. */
const OF_MESSAGE = "a.delivery_id IN (SELECT id FROM webhook_deliveries WHERE message_id = ?)"

function conditions(filter: AttemptFilter): Conditions {
  return new Conditions()
    .narrow("a.delivery_id = ?", filter.deliveryId)
    .narrow("a.webhook_id = ?", filter.endpointId)
    .narrow(OF_MESSAGE, filter.messageId)
    .narrow("a.status IN (SELECT value FROM json_each(?))", asList(filter.statuses))
    .span("a.started_at", filter)
    .tenant(filter.orgId, "endpoints", "a.webhook_id")
    .narrow("EXISTS (SELECT 1 FROM endpoints o WHERE o.id = a.webhook_id AND o.app_id = ?)", filter.appId)
    .content(filter, throughMessage("a.message_id"))
    .narrow(`${responseClassOf("a")} = ?`, filter.responseClass)
}

export function listAttempts(context: Context, filter: AttemptFilter, page: Page): Attempt[] {
  const { appId, ...rest } = filter
  const isOfApplication = (filter.endpointId ?? filter.deliveryId ?? filter.messageId) === undefined
  return appId !== undefined && isOfApplication
    ? ofEveryEndpoint(context, appId, rest, page)
    : readAttempts(context, filter, page)
}

/** Endpoint by endpoint, through their index: by number alone, a quiet application would be looked for among everybody's attempts. */
function ofEveryEndpoint(context: Context, appId: string, filter: AttemptFilter, page: Page): Attempt[] {
  const endpoints = context.connection.sql("SELECT id FROM endpoints WHERE app_id = ?").all(appId)
  const found = endpoints.flatMap(({ id }) =>
    readAttempts(context, { ...filter, endpointId: id as string }, page),
  )
  found.sort((a, b) => (page.order === "ascending" ? a.seq - b.seq : b.seq - a.seq))
  return page.back ? found.slice(-page.limit) : found.slice(0, page.limit)
}

function readAttempts(context: Context, filter: AttemptFilter, page: Page): Attempt[] {
  const where = conditions(filter)
  const inEras = filter.endpointId !== undefined && (filter.deliveryId ?? filter.messageId) === undefined
  return readPage(context, "SELECT a.* FROM attempts a", where, "a.seq", page, inEras).map(toAttempt)
}

/** By endpoint through the index `attempts_endpoint`. */
export function countAttempts({ connection }: Context, filter: AttemptFilter): AttemptCounts {
  const where = conditions(filter)
  const rows = connection
    .once(`SELECT a.status, count(*) AS n FROM attempts a WHERE ${where} GROUP BY a.status`)
    .all(...where.values)
  return toAttemptCounts(rows)
}

export function getAttempt({ connection }: Context, messageId: string, id: string): Attempt | null {
  const row = connection.sql(`SELECT a.* FROM attempts a WHERE ${OF_MESSAGE} AND a.id = ?`).get(messageId, id)
  return row === undefined ? null : toAttempt(row)
}

export function expungeAttempt({ connection }: Context, messageId: string, id: string): void {
  connection
    .sql(`
      UPDATE attempts AS a SET response_body = CAST('EXPUNGED' AS BLOB), response_truncated = 0
       WHERE ${OF_MESSAGE} AND a.id = ?`)
    .run(messageId, id)
}

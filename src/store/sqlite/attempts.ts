/** The log of attempts. */

import { toAttempt } from "../rows.ts"
import type { Attempt, AttemptFilter, NewAttempt, Page } from "../store.ts"
import type { Context } from "./context.ts"

/** Takes the ids from the delivery's row: an attempt of a row that is gone is not kept. */
export function insertAttempt({ connection }: Context, deliverySeq: number, attempt: NewAttempt): void {
  connection
    .sql(`
      INSERT INTO attempts (
        id, delivery_id, webhook_id, message_id, attempt_number, status, url, response_status, response_body, response_truncated, error,
        started_at, duration_ms
      ) SELECT ?, id, webhook_id, message_id, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM webhook_deliveries WHERE seq = ?`)
    .run(
      attempt.id,
      attempt.attemptNumber,
      attempt.status,
      attempt.url,
      attempt.responseStatus,
      attempt.responseBody,
      Number(attempt.responseTruncated),
      attempt.error,
      attempt.startedAt,
      attempt.durationMs,
      deliverySeq,
    )
}

export function listAttempts({ connection }: Context, filter: AttemptFilter, page: Page): Attempt[] {
  const where = ["a.seq < ?"]
  const values: (string | number)[] = [page.before ?? Number.MAX_SAFE_INTEGER]
  const narrow = (condition: string, value: string | undefined) => {
    if (value === undefined) return
    where.push(condition)
    values.push(value)
  }
  narrow("a.delivery_id = ?", filter.deliveryId)
  narrow("a.webhook_id = ?", filter.endpointId)
  narrow("a.delivery_id IN (SELECT id FROM webhook_deliveries WHERE message_id = ?)", filter.messageId)
  narrow("a.status = ?", filter.status)
  return connection
    .sql(`SELECT a.* FROM attempts a WHERE ${where.join(" AND ")} ORDER BY a.seq DESC LIMIT ?`)
    .all(...values, page.limit)
    .map(toAttempt)
}

import { getRandomValues } from "node:crypto"
import { expect, onTestFinished, test } from "vitest"
import { createIds } from "../../core/ids.ts"
import { BOUNDED_PAGES, type Callable, MOST_READ, SCALE } from "../conformance/bounded-pages.ts"
import { Connection } from "./connection.ts"
import { Context } from "./context.ts"
import { migrate } from "./migrate.ts"
import { OPERATIONS } from "./operations.ts"

const { startedAt, endpoints } = SCALE

/** One in five deliveries is dead, one in five waits for a retry, the others were delivered. */
function fill({ db }: Connection, count: number): void {
  const ids = createIds((into) => getRandomValues(into))
  db.function("new_id", (prefix, at) => ids.make(prefix as "msg", at as number))
  const numbers = (to: number) =>
    `WITH RECURSIVE i(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM i WHERE n < ${to - 1})`
  db.exec(`
    ${numbers(endpoints)} INSERT INTO endpoints (
      id, org_id, app_id, url, description, headers, metadata, ordered, disabled, paused, secrets, version, created_at, updated_at
    ) SELECT 'ep_' || n, 'org', 'app_1', '', '', '{}', '{}', 0, 0, 0, x'', 1, 1, 1 FROM i;
    ${numbers(count)} INSERT INTO messages (
      id, app_id, event_type, content_type, channels, tags, metadata, priority, received_at, matched
    ) SELECT new_id('msg', ${startedAt} + n * 1000), 'app_1', 'a', '', '[]', '[]', '{}', 1, ${startedAt} + n * 1000, 1 FROM i;
    INSERT INTO webhook_deliveries (
      id, app_id, webhook_id, message_id, event_type, target_url, status, dead_reason, attempt_count, next_retry_at, received_at
    ) SELECT new_id('dlv', received_at), app_id, 'ep_' || (seq * 7 / 5 % ${endpoints}), id, event_type, '',
             CASE seq % 5 WHEN 0 THEN 'dead' WHEN 1 THEN 'failed' ELSE 'delivered' END, iif(seq % 5 = 0, 'exhausted', NULL),
             1, received_at, received_at
        FROM messages;
    INSERT INTO attempts (
      id, delivery_id, webhook_id, message_id, attempt_number, manual, status, url, response_status, response_truncated, started_at, duration_ms
    ) SELECT new_id('atmpt', received_at), id, webhook_id, message_id, 1, 0, 'failed', '', 500, 0, received_at, 1
        FROM webhook_deliveries;`)
}

/** A store that counts the rows that its lists visit: each of their conditions begins with `true`. */
function counting(count: number) {
  const connection = new Connection(":memory:")
  onTestFinished(() => connection.close())
  migrate(connection)
  fill(connection, count)
  let rows = 0
  connection.db.function("counted", () => ++rows)
  const { once } = connection
  connection.once = (text) => once.call(connection, text.replaceAll("WHERE true", "WHERE counted()"))
  const context = new Context(
    connection,
    createIds((into) => getRandomValues(into)),
  )
  const bound = Object.entries(OPERATIONS).map(([name, operation]) => [
    name,
    (operation as (context: Context, ...args: unknown[]) => unknown).bind(null, context),
  ])
  const store = Object.fromEntries(bound) as Callable
  return async (read: (store: Callable) => Promise<unknown>) => {
    rows = 0
    await read(store)
    return rows
  }
}

test("a page of the dashboard reads as many rows among 24 000 deliveries as among 6000", async () => {
  const [small, large] = [counting(6000), counting(24_000)]
  for (const [what, read] of Object.entries(BOUNDED_PAGES)) {
    const readBounded = (store: Callable) => read(store, true)
    const [few, many] = [await small(readBounded), await large(readBounded)]
    expect(few, what).toBeLessThanOrEqual(MOST_READ)
    expect(many, what).toBeLessThanOrEqual(MOST_READ)
    expect(await large((store) => read(store, false)), what).toBeGreaterThan(MOST_READ)
  }
})

/** Messages: reading them, and removing what they carried. */
import { toMessage } from "../rows.ts"
import type { Message, MessageFilter, Page, Span, Usage } from "../store.ts"
import { asList, Conditions } from "./conditions.ts"
import type { Context } from "./context.ts"
import { oldestFirst, readPage } from "./page.ts"

/** Not `*`: a payload that is not asked for is not read from the disk. */
const select = (withPayload: boolean) => `
  SELECT m.seq, m.id, m.app_id, m.event_type, m.content_type, m.event_id, m.channels, m.tags, m.session_id, m.metadata, m.priority,
         m.max_attempts, m.received_at, m.deliver_at, m.matched, m.expunged, ${withPayload ? "m.payload" : "NULL AS payload"}
    FROM messages m`

/** What a message becomes when its payload goes. */
export const EXPUNGED = "payload = NULL, expunged = 1, payload_until = NULL"

export function getMessage({ connection }: Context, appId: string, key: string): Message | null {
  const one = select(true)
  const row = connection
    .sql(
      `${one} WHERE m.id = ?2 AND m.app_id = ?1 UNION ALL ${one} WHERE m.event_id = ?2 AND m.app_id = ?1 LIMIT 1`,
    )
    .get(appId, key)
  return row === undefined ? null : toMessage(row)
}

export function getMessages(
  { connection }: Context,
  ids: readonly string[],
  withPayload: boolean,
): Message[] {
  return connection
    .sql(`${select(withPayload)} WHERE m.id IN (SELECT value FROM json_each(?))`)
    .all(asList(ids)!)
    .map(toMessage)
}

export function listMessages(
  context: Context,
  filter: MessageFilter,
  page: Page,
  withPayload: boolean,
): Message[] {
  return readPage(context, select(withPayload), conditions(filter), "m.seq", page).map(toMessage)
}

/** Between two numbers, for tasks. */
export function rangeOfMessages(
  context: Context,
  filter: MessageFilter,
  after: number,
  upTo: number,
  limit: number,
): Message[] {
  const where = conditions(filter).narrow("m.seq <= ?", upTo)
  return readPage(context, select(false), where, "m.seq", oldestFirst(after, limit)).map(toMessage)
}

export function countMessages({ connection }: Context, filter: MessageFilter): number {
  const where = conditions(filter)
  return connection.once(`SELECT count(*) AS n FROM messages m WHERE ${where}`).get(...where.values)!
    .n as number
}

function conditions(filter: MessageFilter): Conditions {
  return new Conditions().narrow("m.app_id = ?", filter.appId).span("m.received_at", filter).content(filter)
}

export function usage(
  { connection }: Context,
  orgId: string,
  appIds: readonly string[] | null,
  span: Span,
): Usage[] {
  const where = new Conditions()
    .narrow("m.app_id IN (SELECT id FROM applications WHERE org_id = ?)", orgId)
    .narrow("m.app_id IN (SELECT value FROM json_each(?))", asList(appIds ?? undefined))
    .span("m.received_at", span)
  return connection
    .once(`
      SELECT m.app_id, count(*) AS messages, sum(m.matched) AS destinations
        FROM messages m WHERE ${where} GROUP BY m.app_id ORDER BY m.app_id`)
    .all(...where.values)
    .map((row) => ({
      appId: row.app_id as string,
      messages: row.messages as number,
      destinations: row.destinations as number,
    }))
}

export function expungeMessage({ connection }: Context, appId: string, id: string): void {
  connection.sql(`UPDATE messages SET ${EXPUNGED} WHERE app_id = ? AND id = ?`).run(appId, id)
}

/** Says for each whether it had a payload until now. */
export function expungeMany({ connection }: Context, ids: readonly string[]): boolean[] {
  const expunge = connection.sql(`UPDATE messages SET ${EXPUNGED} WHERE id = ? AND expunged = 0`)
  return ids.map((id) => expunge.run(id).changes === 1)
}

/** Messages: reading them, and removing their payloads. */
import { toMessage } from "../rows.ts"
import type { Message, MessageFilter, Page, Span, Usage } from "../store.ts"
import { Conditions, unprepared } from "./conditions.ts"
import type { Runner } from "./connection.ts"
import type { Context } from "./context.ts"
import { oldestFirst, readPage } from "./page.ts"
import type { Statement } from "./statement.ts"

/** All but the payload, which is the largest part and lies apart from the rest. */
const SELECT = `
  SELECT m.seq, m.id, m.app_id, m.event_type, m.expunged, m.content_type, m.event_id, m.channels, m.tags, m.session_id, m.metadata,
         m.priority, m.max_attempts, m.received_at, m.deliver_at, m.matched`
const select = (withPayload: boolean) => `${SELECT}${withPayload ? ", m.payload" : ""} FROM messages m`

const GET: Statement = {
  name: "messages.get",
  text: `
    ${select(true)} WHERE m.app_id = $1 AND m.id = $2
    UNION ALL ${select(true)} WHERE m.app_id = $1 AND m.event_id = $2 LIMIT 1`,
}

export async function getMessage({ database }: Context, appId: string, key: string): Promise<Message | null> {
  const [row] = await database.runCalmly(GET, [appId, key])
  return row === undefined ? null : toMessage(row)
}

const getMany = (withPayload: boolean): Statement => ({
  name: withPayload ? "messages.get-many-whole" : "messages.get-many",
  text: `${select(withPayload)} WHERE m.id = ANY ($1)`,
})

export async function getMessages(
  { database }: Context,
  ids: readonly string[],
  withPayload: boolean,
): Promise<Message[]> {
  return (await database.runCalmly(getMany(withPayload), [ids])).map(toMessage)
}

export async function listMessages(
  context: Context,
  filter: MessageFilter,
  page: Page,
  withPayload: boolean,
): Promise<Message[]> {
  return (await readPage(context, select(withPayload), conditions(filter), "m.seq", page)).map(toMessage)
}

/** Oldest first, between two numbers, for tasks. */
export async function rangeOfMessages(
  context: Context,
  filter: MessageFilter,
  after: number,
  upTo: number,
  limit: number,
): Promise<Message[]> {
  const where = conditions(filter).narrow("m.seq <= ?", upTo)
  return (await readPage(context, select(false), where, "m.seq", oldestFirst(after, limit))).map(toMessage)
}

export async function countMessages({ database }: Context, filter: MessageFilter): Promise<number> {
  const where = conditions(filter)
  const text = `SELECT count(*) AS n FROM messages m WHERE ${where}`
  const [row] = await database.runCalmly(unprepared(text), where.values)
  return row!.n as number
}

function conditions(filter: MessageFilter): Conditions {
  return new Conditions().narrow("m.app_id = ?", filter.appId).content(filter).span("m.received_at", filter)
}

export async function usage(
  { database }: Context,
  orgId: string,
  appIds: readonly string[] | null,
  span: Span,
): Promise<Usage[]> {
  const where = new Conditions()
    .tenant(orgId, "applications", "m.app_id")
    .narrow("m.app_id = ANY (?)", appIds ?? undefined)
    .span("m.received_at", span)
  const text = `
    SELECT m.app_id, count(*) AS messages, sum(m.matched)::bigint AS destinations
      FROM messages m WHERE ${where} GROUP BY m.app_id ORDER BY m.app_id`
  const rows = await database.runCalmly(unprepared(text), where.values)
  return rows.map((row) => ({
    appId: row.app_id as string,
    messages: row.messages as number,
    destinations: row.destinations as number,
  }))
}

export const EXPUNGED = "payload = NULL, expunged = true, payload_until = NULL"
const EXPUNGE: Statement = {
  name: "messages.expunge",
  text: `UPDATE messages SET ${EXPUNGED} WHERE app_id = $1 AND id = $2`,
}
const EXPUNGE_MANY: Statement = {
  name: "messages.expunge-many",
  text: `UPDATE messages SET ${EXPUNGED} WHERE id = ANY ($1) AND NOT expunged RETURNING id`,
}

export async function expungeMessage({ database }: Context, appId: string, id: string): Promise<void> {
  await database.run(EXPUNGE, [appId, id])
}

/** In a transaction of the caller's. How many had a payload until now. */
export async function expungeWithin(runner: Runner, ids: readonly string[]): Promise<number> {
  return ids.length === 0 ? 0 : (await runner.run(EXPUNGE_MANY, [ids])).length
}

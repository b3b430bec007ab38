/** Messages: reading them, and removing their payloads. */
import { ofEventId, ofMessages, ofUsage, oldestFirst } from "../conditions.ts"
import { orNull, toMessage, toPayloadSize, toUsage } from "../rows.ts"
import {
  EXPUNGE_MESSAGE,
  EXPUNGED,
  findMessagesOf,
  GET_MESSAGE,
  SELECT_PAYLOAD_SIZES,
  selectMessages,
  statement,
  usageOf,
} from "../statements.ts"
import type { Message, MessageFilter } from "../store.ts"
import { POSTGRES } from "./conditions.ts"
import type { Runner } from "./connection.ts"
import type { Context, Operation } from "./context.ts"
import { readAll, readPage } from "./page.ts"

export const getMessage: Operation<"getMessage"> = async ({ database }, appId, key) =>
  orNull((await database.runCalmly(GET_MESSAGE, [appId, key]))[0], toMessage)

const GET_MANY = statement("messages.get-many", `${selectMessages(false)} WHERE m.id = ANY ($1)`)
const GET_MANY_WHOLE = statement("messages.get-many-whole", `${selectMessages(true)} WHERE m.id = ANY ($1)`)

export const getMessages: Operation<"getMessages"> = async ({ database }, ids, withPayload) =>
  (await database.runCalmly(withPayload ? GET_MANY_WHOLE : GET_MANY, [ids])).map(toMessage)

const GET_PAYLOAD_SIZES = statement("messages.payload-sizes", `${SELECT_PAYLOAD_SIZES} WHERE m.id = ANY ($1)`)

export const getPayloadSizes: Operation<"getPayloadSizes"> = async ({ database }, ids) =>
  (await database.runCalmly(GET_PAYLOAD_SIZES, [ids])).map(toPayloadSize)

export const findMessages: Operation<"findMessages"> = async (context, orgId, eventId, limit) => {
  const where = ofEventId(POSTGRES, orgId, eventId)
  return (await readAll(context, findMessagesOf(where, limit), where)).map(toMessage)
}

export const listMessages: Operation<"listMessages"> = async (context, filter, page, withPayload) => {
  const where = ofMessages(POSTGRES, filter)
  return (await readPage(context, selectMessages(withPayload), where, "m.seq", page)).map(toMessage)
}

/** For tasks: the oldest messages after the cursor. */
export async function rangeOfMessages(
  context: Context,
  filter: MessageFilter,
  after: number,
  upTo: number,
  limit: number,
): Promise<Message[]> {
  const where = ofMessages(POSTGRES, filter).narrow("m.seq <= ?", upTo)
  const rows = await readPage(context, selectMessages(false), where, "m.seq", oldestFirst(after, limit))
  return rows.map(toMessage)
}

export const countMessages: Operation<"countMessages"> = async (context, filter) => {
  const where = ofMessages(POSTGRES, filter)
  const [row] = await readAll(context, `SELECT count(*) AS n FROM messages m WHERE ${where}`, where)
  return row!.n as number
}

export const usage: Operation<"usage"> = async (context, orgId, appIds, span) => {
  const where = ofUsage(POSTGRES, orgId, appIds, span)
  return (await readAll(context, usageOf(where), where)).map(toUsage)
}

export const expungeMessage: Operation<"expungeMessage"> = async ({ database }, appId, id) => {
  await database.run(EXPUNGE_MESSAGE, [appId, id])
}

const EXPUNGE_MANY = statement(
  "messages.expunge-many",
  `UPDATE messages SET ${EXPUNGED} WHERE id = ANY ($1) AND NOT expunged RETURNING id`,
)

/** In a transaction of the caller's. How many of the messages had a payload. */
export async function expungeWithin(runner: Runner, ids: readonly string[]): Promise<number> {
  return ids.length === 0 ? 0 : (await runner.run(EXPUNGE_MANY, [ids])).length
}

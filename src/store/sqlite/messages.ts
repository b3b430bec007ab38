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
  usageOf,
} from "../statements.ts"
import type { Message, MessageFilter } from "../store.ts"
import { SQLITE } from "./conditions.ts"
import type { Context, Operation } from "./context.ts"
import { readAll, readPage } from "./page.ts"

export const getMessage: Operation<"getMessage"> = ({ connection }, appId, key) =>
  orNull(connection.sql(GET_MESSAGE.text).get(appId, key), toMessage)

export const getMessages: Operation<"getMessages"> = ({ connection }, ids, withPayload) =>
  connection
    .sql(`${selectMessages(withPayload)} WHERE ${SQLITE.oneOf("m.id")}`)
    .all(SQLITE.toParameter(ids))
    .map(toMessage)

export const getPayloadSizes: Operation<"getPayloadSizes"> = ({ connection }, ids) =>
  connection
    .sql(`${SELECT_PAYLOAD_SIZES} WHERE ${SQLITE.oneOf("m.id")}`)
    .all(SQLITE.toParameter(ids))
    .map(toPayloadSize)

export const findMessages: Operation<"findMessages"> = (context, orgId, eventId, limit) => {
  const where = ofEventId(SQLITE, orgId, eventId)
  return readAll(context, findMessagesOf(where, limit), where).map(toMessage)
}

export const listMessages: Operation<"listMessages"> = (context, filter, page, withPayload) =>
  readPage(context, selectMessages(withPayload), ofMessages(SQLITE, filter), "m.seq", page).map(toMessage)

/** For tasks: the oldest messages after the cursor. */
export function rangeOfMessages(
  context: Context,
  filter: MessageFilter,
  after: number,
  upTo: number,
  limit: number,
): Message[] {
  const where = ofMessages(SQLITE, filter).narrow("m.seq <= ?", upTo)
  return readPage(context, selectMessages(false), where, "m.seq", oldestFirst(after, limit)).map(toMessage)
}

export const countMessages: Operation<"countMessages"> = (context, filter) => {
  const where = ofMessages(SQLITE, filter)
  return readAll(context, `SELECT count(*) AS n FROM messages m WHERE ${where}`, where)[0]!.n as number
}

export const usage: Operation<"usage"> = (context, orgId, appIds, span) => {
  const where = ofUsage(SQLITE, orgId, appIds, span)
  return readAll(context, usageOf(where), where).map(toUsage)
}

export const expungeMessage: Operation<"expungeMessage"> = ({ connection }, appId, id) => {
  connection.sql(EXPUNGE_MESSAGE.text).run(appId, id)
}

/** Says for each message whether it had a payload. */
export function expungeMany({ connection }: Context, ids: readonly string[]): boolean[] {
  const expunge = connection.sql(`UPDATE messages SET ${EXPUNGED} WHERE id = ? AND NOT expunged`)
  return ids.map((id) => expunge.run(id).changes === 1)
}

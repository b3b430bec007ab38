/** Accepting messages: the message, its deliveries and its idempotency key, in one transaction. */
import { notFound, PosthornError } from "../../core/errors.ts"
import { wants } from "../../core/match.ts"
import { priorityNumber, toJson, toMessage } from "../rows.ts"
import type { Accepted, LaneWake, Message, MessageFilter, NewMessage, Page } from "../store.ts"
import type { Context, Recipients } from "./context.ts"
import { orConflict } from "./errors.ts"
import { findKey, rememberKey } from "./idempotency.ts"

export function accept(context: Context, messages: readonly NewMessage[], tx?: unknown): Accepted[] {
  if (tx !== undefined) {
    const text =
      "tx cannot be given here: SQLite has a connection of its own; only on PostgreSQL can a send join a transaction"
    throw new PosthornError("invalid_input", text, { field: "tx" })
  }
  return messages.map((message) => acceptOne(context, message))
}

function acceptOne(context: Context, message: NewMessage): Accepted {
  const recipients = recipientsOf(context, message.app)
  const { idempotency, receivedAt } = message
  if (idempotency !== null) {
    const use = findKey(context, recipients.appId, idempotency.key, receivedAt)
    if (use !== null)
      return answerAgain(context, use.messageId, sameBytes(use.digest, idempotency.digest), receivedAt)
    rememberKey(
      context,
      recipients.appId,
      idempotency.key,
      { messageId: message.id, digest: idempotency.digest },
      receivedAt,
    )
  }
  const subscribers = recipients.subscribers.filter((one) => wants(one, message.eventType, message.channels))
  const ordered = subscribers.find((one) => one.ordered)
  if (ordered !== undefined && message.priority !== "normal") {
    throw new PosthornError("invalid_input", `priority cannot be given: endpoint ${ordered.id} is ordered`, {
      field: "priority",
    })
  }
  insertMessage(context, message, recipients.appId, subscribers.length)
  const dueAt = Math.max(receivedAt, message.deliverAt ?? 0)
  const lanes: LaneWake[] = []
  const insert = context.connection.sql(`
    INSERT INTO webhook_deliveries (
      id, app_id, webhook_id, message_id, session_id, event_type, target_url, max_attempts, priority, ordered, deferred,
      next_retry_at, received_at, age_from
    ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
  for (const { id, url, ordered } of subscribers) {
    insert.run(
      context.ids.make("dlv", receivedAt),
      recipients.appId,
      id,
      message.id,
      message.sessionId,
      message.eventType,
      url,
      message.maxAttempts,
      priorityNumber(message.priority),
      Number(ordered),
      Number(message.deliverAt !== null),
      dueAt,
      receivedAt,
      dueAt,
    )
    lanes.push({ endpointId: id, appId: recipients.appId, dueAt })
  }
  return { messageId: message.id, receivedAt, matched: subscribers.length, duplicate: false, lanes }
}

function insertMessage({ connection }: Context, message: NewMessage, appId: string, matched: number): void {
  orConflict("eventId", `a message with eventId "${message.eventId}" exists already`, () =>
    connection
      .sql(`
        INSERT INTO messages (
          id, app_id, event_type, payload, content_type, event_id, channels, session_id, metadata, priority, max_attempts,
          received_at, deliver_at, matched, purge_at
        ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
      .run(
        message.id,
        appId,
        message.eventType,
        message.payload,
        message.contentType,
        message.eventId,
        toJson(message.channels),
        message.sessionId,
        toJson(message.metadata),
        priorityNumber(message.priority),
        message.maxAttempts,
        message.receivedAt,
        message.deliverAt,
        matched,
        matched === 0 ? message.purgeUnmatchedAt : null,
      ),
  )
}

function answerAgain({ connection }: Context, messageId: string, same: boolean, now: number): Accepted {
  if (!same) {
    throw new PosthornError("conflict", "this idempotency key was used for another message", {
      field: "idempotencyKey",
    })
  }
  const row = connection.sql("SELECT received_at, matched FROM messages WHERE id = ?").get(messageId)
  return {
    messageId,
    receivedAt: (row?.received_at as number | undefined) ?? now,
    matched: (row?.matched as number | undefined) ?? 0,
    duplicate: true,
    lanes: [],
  }
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0
}

function recipientsOf(context: Context, app: string): Recipients {
  let recipients = context.recipients.get(app)
  if (recipients === undefined) {
    recipients = loadRecipients(context, app)
    context.recipients.set(app, recipients)
  }
  if (recipients === null) throw notFound("application", app)
  return recipients
}

function loadRecipients({ connection }: Context, app: string): Recipients | null {
  const found = connection
    .sql(
      "SELECT id FROM applications WHERE deleted_at IS NULL AND (id = ?1 OR uid = ?1) ORDER BY id = ?1 DESC LIMIT 1",
    )
    .get(app)
  if (found === undefined) return null
  const appId = found.id as string
  const subscribers = connection
    .sql(
      "SELECT id, url, ordered, event_types, channels FROM endpoints WHERE app_id = ? AND deleted_at IS NULL AND disabled = 0 ORDER BY id",
    )
    .all(appId)
    .map((row) => ({
      id: row.id as string,
      url: row.url as string,
      ordered: row.ordered === 1,
      eventTypes: row.event_types === null ? null : JSON.parse(row.event_types as string),
      channels: row.channels === null ? null : JSON.parse(row.channels as string),
    }))
  return { appId, subscribers }
}

export function getMessage({ connection }: Context, appId: string, id: string): Message | null {
  const row = connection
    .sql("SELECT * FROM messages WHERE app_id = ?1 AND (id = ?2 OR event_id = ?2) LIMIT 1")
    .get(appId, id)
  return row === undefined ? null : toMessage(row)
}

export function listMessages({ connection }: Context, filter: MessageFilter, page: Page): Message[] {
  return connection
    .sql(
      "SELECT * FROM messages WHERE app_id = ?1 AND seq < ?2 AND (?3 IS NULL OR event_type = ?3) ORDER BY seq DESC LIMIT ?4",
    )
    .all(filter.appId, page.before ?? Number.MAX_SAFE_INTEGER, filter.eventType ?? null, page.limit)
    .map(toMessage)
}

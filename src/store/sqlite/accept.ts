/** Accepting messages: the message, its deliveries and its idempotency key, in one transaction. */
import { notFound, PosthornError } from "../../core/errors.ts"
import { transportOf } from "../../core/transport-kind.ts"
import { Recipients } from "../recipients.ts"
import { eventIdTaken, idempotencyKeyTaken, priorityRefused } from "../refusals.ts"
import { priorityNumber, toJson } from "../rows.ts"
import type { Accepted, LaneWake, NewMessage } from "../store.ts"
import { getApplication } from "./applications.ts"
import type { Context } from "./context.ts"
import { orRefuse } from "./errors.ts"
import { findKey, rememberKey } from "./idempotency.ts"
import { claim } from "./lanes.ts"

/** The contract's result, with the deliveries that were claimed for open lanes. */
export interface AcceptedOnThread extends Omit<Accepted, "lanes"> {
  readonly lanes: readonly LaneOnThread[]
}

export interface LaneOnThread extends Required<LaneWake> {
  readonly handed?: { readonly seq: number; readonly id: string; readonly token: number } | undefined
}

export function accept(context: Context, messages: readonly NewMessage[], tx?: unknown): AcceptedOnThread[] {
  if (tx !== undefined) {
    const text =
      "tx cannot be given here: SQLite has a connection of its own; only on PostgreSQL can a send join a transaction"
    throw new PosthornError("invalid_input", text, { field: "tx" })
  }
  return messages.map((message) => acceptOne(context, message))
}

function acceptOne(context: Context, message: NewMessage): AcceptedOnThread {
  const recipients = recipientsOf(context, message.orgId, message.app)
  const { idempotency, receivedAt } = message
  if (idempotency !== null) {
    const use = findKey(context, recipients.appId, idempotency.key, receivedAt)
    if (use !== null)
      return answerAgain(
        context,
        recipients.appId,
        use.messageId,
        sameBytes(use.digest, idempotency.digest),
        message,
      )
    rememberKey(
      context,
      recipients.appId,
      idempotency.key,
      { messageId: message.id, digest: idempotency.digest },
      receivedAt,
    )
  }
  const subscribers = recipients.of(message)
  const ordered = subscribers.find((one) => one.ordered)
  if (ordered !== undefined && message.priority !== "normal") {
    throw priorityRefused(ordered.id)
  }
  insertMessage(context, message, recipients.appId, subscribers.length)
  const { wakeAt, deliverAt, dated } = message
  const dueAt = dated ? deliverAt! : wakeAt
  const lanes: LaneOnThread[] = []
  for (const { id, url, ordered } of subscribers) {
    const seq = context.takeDeliverySeq()
    const deliveryId = context.ids.make("dlv", receivedAt)
    const handoff = deliverAt === null ? context.openLanes.take(id, message.payload.length) : null
    context.deliveries.add(
      seq,
      deliveryId,
      recipients.appId,
      id,
      message.id,
      message.sessionId,
      message.eventType,
      url,
      message.maxAttempts,
      priorityNumber(message.priority),
      // Dated deliveries wait with those that join the ordered line later: see the migration DATES.
      Number(ordered || dated),
      Number(deliverAt !== null),
      Number(dated),
      deliverAt === null ? null : dueAt,
      receivedAt,
      dueAt,
      Number(handoff !== null),
    )
    if (handoff !== null) claim(context, seq, handoff.token, receivedAt, handoff.starts)
    const handed = handoff === null ? undefined : { seq, id: deliveryId, token: handoff.token }
    const transport = transportOf(url)
    lanes.push({ endpointId: id, appId: recipients.appId, dueAt: wakeAt, transport, handed })
  }
  return {
    messageId: message.id,
    appId: recipients.appId,
    receivedAt,
    deliverAt,
    matched: subscribers.length,
    duplicate: false,
    lanes,
  }
}

/** Larger payloads are not batched: a prepared statement keeps its parameters until its next run. */
const LARGE_BYTES = 16_384

function insertMessage(context: Context, message: NewMessage, appId: string, matched: number): void {
  const { messages } = context
  const mayBeThere = message.eventId !== null || message.to !== null
  if (!mayBeThere && message.payload.length <= LARGE_BYTES)
    return addMessage(context, message, appId, matched)
  // Flush the others first, so that a refusal is about this message.
  messages.flush()
  orRefuse(
    () => eventIdTaken(message.eventId),
    () => {
      addMessage(context, message, appId, matched)
      messages.flush()
    },
  )
}

function addMessage({ messages }: Context, message: NewMessage, appId: string, matched: number): void {
  messages.add(
    message.id,
    appId,
    message.eventType,
    message.payload,
    message.contentType,
    message.eventId,
    toJson(message.channels),
    toJson(message.tags),
    message.sessionId,
    toJson(message.metadata),
    priorityNumber(message.priority),
    message.maxAttempts,
    message.receivedAt,
    message.deliverAt,
    matched,
    matched === 0 ? message.purgeUnmatchedAt : null,
    message.payloadUntil,
    message.traceparent,
    message.inbound,
  )
}

function answerAgain(
  context: Context,
  appId: string,
  messageId: string,
  same: boolean,
  asked: NewMessage,
): AcceptedOnThread {
  if (!same) throw idempotencyKeyTaken()
  // The first message may still be batched.
  context.messages.flush()
  const row = context.connection
    .sql("SELECT received_at, deliver_at, matched FROM messages WHERE id = ?")
    .get(messageId)
  return {
    messageId,
    appId,
    receivedAt: (row?.received_at as number | undefined) ?? asked.receivedAt,
    deliverAt: (row?.deliver_at as number | null | undefined) ?? asked.deliverAt,
    matched: (row?.matched as number | undefined) ?? 0,
    duplicate: true,
    lanes: [],
  }
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0
}

function recipientsOf(context: Context, orgId: string, app: string): Recipients {
  // Two tenants may use the same uid.
  const key = `${orgId} ${app}`
  const known = context.recipients.get(key)
  if (known !== undefined) return known
  const recipients = loadRecipients(context, orgId, app)
  context.recipients.set(key, recipients, 1 + recipients.subscribers.length)
  return recipients
}

/** Throws when there is no application: its absence is not cached, since it may be created at any moment. */
function loadRecipients(context: Context, orgId: string, app: string): Recipients {
  const application = getApplication(context, orgId, app)
  if (application === null) throw notFound("application", app)
  const appId = application.id
  const subscribers = context.connection
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
  return new Recipients(appId, subscribers)
}

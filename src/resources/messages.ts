/** Messages: what was accepted. */
import { createHash } from "node:crypto"
import { invalid, notFound } from "../core/errors.ts"
import {
  nameList,
  optionalName,
  optionalWholeNumber,
  type PayloadBytes,
  payloadBytes,
  refuseUnknown,
  requireMetadata,
  requireName,
  requireObject,
  requireText,
  requireTime,
} from "../core/input.ts"
import { STANDARD_RETENTION } from "../core/policy.ts"
import type { Accepted, NewMessage, Priority, Message as Row } from "../store/store.ts"
import { type Core, date, type List, listOf, type PageInput, pageOf, requireApplication } from "./core.ts"

export interface MessageInput {
  eventType: string
  /** A JSON value, or bytes that are sent as they are. */
  payload: unknown
  /** application/json for JSON, application/octet-stream for bytes, unless told. */
  contentType?: string
  /** Your own id for the event, unique within the application. */
  eventId?: string
  /** The same key and message again gives the first answer; for at least 24 hours. */
  idempotencyKey?: string
  channels?: readonly string[]
  sessionId?: string
  metadata?: { readonly [key: string]: string }
  /** Not before this time. */
  deliverAt?: Date | number
  /** Not before so many seconds from now. */
  delaySeconds?: number
  /** Instead of the policy's. */
  maxAttempts?: number
  priority?: Priority
}

const FIELDS = [
  "eventType",
  "payload",
  "contentType",
  "eventId",
  "idempotencyKey",
  "channels",
  "sessionId",
  "metadata",
  "deliverAt",
  "delaySeconds",
  "maxAttempts",
  "priority",
] as const

export interface SendOptions {
  /** A client of the package `pg` in a transaction on the store's own database: the message exists if and only if it commits. */
  tx?: unknown
}

export interface SendResult {
  /** The message's id: what receivers see as `webhook-id`. */
  readonly id: string
  readonly receivedAt: Date
  /** How many endpoints get it. */
  readonly matched: number
  /** True when the idempotency key had been used: this is the first answer again. */
  readonly duplicate: boolean
}

export interface Message extends Omit<Row, "seq" | "receivedAt" | "deliverAt"> {
  readonly receivedAt: Date
  readonly deliverAt: Date | null
}

export interface MessageFilterInput extends PageInput {
  eventType?: string
}

const PRIORITIES: readonly Priority[] = ["high", "normal", "low"]
const LONGEST_DELAY_SECONDS = 3650 * 86_400
const MOST_IN_A_BATCH = 1000

export class Messages {
  readonly #core: Core

  constructor(core: Core) {
    this.#core = core
  }

  async send(app: string, input: MessageInput, options: SendOptions = {}): Promise<SendResult> {
    const [result] = await this.#accept([this.#parse(app, input, "")], options)
    return result!
  }

  /** All or none, in this order. */
  async sendBatch(
    app: string,
    inputs: readonly MessageInput[],
    options: SendOptions = {},
  ): Promise<SendResult[]> {
    if (!Array.isArray(inputs) || inputs.length === 0 || inputs.length > MOST_IN_A_BATCH) {
      throw invalid("messages", `must be a list of 1 to ${MOST_IN_A_BATCH} messages`)
    }
    return this.#accept(
      inputs.map((input, i) => this.#parse(app, input, `messages[${i}]`)),
      options,
    )
  }

  async #accept(messages: readonly NewMessage[], options: SendOptions): Promise<SendResult[]> {
    requireObject(options, "options")
    refuseUnknown(options, ["tx"], "options")
    const { tx } = options
    if (tx === null) throw invalid("tx", "must be a client of the package pg, in a transaction")
    const accepted = await this.#core.store.accept(messages, tx)
    const lanes = accepted.flatMap((one) => one.lanes)
    // In somebody's transaction nothing is there to be found yet: the poll finds it when that commits.
    if (lanes.length > 0 && tx === undefined) this.#core.wake(lanes)
    return accepted.map(showAccepted)
  }

  /** By id or eventId; rejects with `not_found`. */
  async get(app: string, message: string): Promise<Message> {
    const { id } = await requireApplication(this.#core, app)
    const row = await this.#core.store.getMessage(id, message)
    if (row === null) throw notFound("message", message)
    return show(row)
  }

  async list(app: string, filter: MessageFilterInput = {}): Promise<List<Message>> {
    refuseUnknown(filter, ["eventType", "limit", "cursor"], "")
    const { id } = await requireApplication(this.#core, app)
    const page = pageOf(filter)
    return listOf(
      await this.#core.store.listMessages({ appId: id, eventType: filter.eventType }, page),
      page.limit,
      show,
    )
  }

  #parse(app: string, input: MessageInput, at: string): NewMessage {
    const field = (name: string) => (at === "" ? name : `${at}.${name}`)
    if (typeof app !== "string" || app === "") throw invalid("application", "must be an id or uid")
    requireObject(input, at === "" ? "message" : at)
    refuseUnknown(input, FIELDS, at)
    if (input.payload === undefined) throw invalid(field("payload"), "is required")
    const now = this.#core.clock.now()
    const eventType = requireName(input.eventType, field("eventType"))
    const payload = payloadBytes(input.payload, input.contentType, this.#core.maxPayloadBytes, field)
    const message = {
      id: this.#core.ids.make("msg", now),
      app,
      eventType,
      payload: payload.bytes,
      contentType: payload.contentType,
      eventId: optionalName(input.eventId, field("eventId")),
      channels: nameList(input.channels, field("channels"), 5) ?? [],
      sessionId: input.sessionId === undefined ? null : requireText(input.sessionId, field("sessionId"), 256),
      metadata: requireMetadata(input.metadata, field("metadata")),
      priority: input.priority ?? "normal",
      maxAttempts: optionalWholeNumber(input.maxAttempts, field("maxAttempts"), 1, 100_000),
      receivedAt: now,
      deliverAt: deliverAt(input, now, field),
      purgeUnmatchedAt:
        now +
        Math.round(
          (this.#core.defaultPolicy.retention.delivered ?? STANDARD_RETENTION.delivered!).after * 1000,
        ),
    }
    if (!PRIORITIES.includes(message.priority))
      throw invalid(field("priority"), "must be high, normal or low")
    return { ...message, idempotency: idempotency(input, payload, field("idempotencyKey")) }
  }
}

function deliverAt(input: MessageInput, now: number, field: (name: string) => string): number | null {
  if (input.delaySeconds !== undefined) {
    if (input.deliverAt !== undefined)
      throw invalid(field("delaySeconds"), "and deliverAt say the same thing; give one of them")
    const { delaySeconds } = input
    if (typeof delaySeconds !== "number" || !(delaySeconds >= 0 && delaySeconds <= LONGEST_DELAY_SECONDS)) {
      throw invalid(field("delaySeconds"), `must be a number between 0 and ${LONGEST_DELAY_SECONDS}`)
    }
    return now + Math.round(delaySeconds * 1000)
  }
  return input.deliverAt === undefined ? null : requireTime(input.deliverAt, field("deliverAt"))
}

/** The key is bound to everything that the caller asked for: another request under the same key is a conflict, not somebody else's answer. */
function idempotency(input: MessageInput, payload: PayloadBytes, field: string): NewMessage["idempotency"] {
  if (input.idempotencyKey === undefined) return null
  const key = requireText(input.idempotencyKey, field, 256)
  if (key === "") throw invalid(field, "must not be empty")
  const { payload: _payload, idempotencyKey: _key, ...rest } = input
  const asked = JSON.stringify(Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1)))
  return {
    key: createHash("sha256").update(key).digest().subarray(0, 16),
    digest: createHash("sha256")
      .update(asked)
      .update(payload.contentType)
      .update(payload.bytes)
      .digest()
      .subarray(0, 16),
  }
}

function showAccepted({ messageId, receivedAt, matched, duplicate }: Accepted): SendResult {
  return { id: messageId, receivedAt: date(receivedAt), matched, duplicate }
}

function show({ seq: _seq, ...row }: Row): Message {
  return { ...row, receivedAt: date(row.receivedAt), deliverAt: date(row.deliverAt) }
}

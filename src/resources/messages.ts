/** Messages: what was accepted. */
import { createHash } from "node:crypto"
import { type Moment, steadyTimeOf } from "../core/clock.ts"
import { invalid, notFound, PosthornError } from "../core/errors.ts"
import {
  nameList,
  optionalName,
  optionalWholeNumber,
  type PayloadBytes,
  payloadBytes,
  refuseUnknown,
  requireChannel,
  requireDelayMs,
  requireMetadata,
  requireName,
  requireObject,
  requireTag,
  requireText,
  requireTime,
  wholeNumber,
} from "../core/input.ts"
import { expunge } from "../core/operate.ts"
import { STANDARD_RETENTION } from "../core/policy.ts"
import { policyOf } from "../engine/target.ts"
import { amended } from "../observe/event-stream.ts"
import type { Accepted, NewMessage, Priority, Message as Row } from "../store/store.ts"
import {
  type List,
  type Listing,
  listing,
  listPage,
  PAGE_FIELDS,
  type PageInput,
  pageBySeq,
} from "./paging.ts"
import { CONTENT_FIELDS, type ContentQuery, parseContent } from "./query.ts"
import {
  date,
  newTask,
  type ResourceContext,
  requireApplication,
  requireEndpoint,
} from "./resource-context.ts"
import { startTask, type Task } from "./tasks.ts"

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
  /** Words to find it by. */
  tags?: readonly string[]
  sessionId?: string
  metadata?: { readonly [key: string]: string }
  /** Not before this time. */
  deliverAt?: Date | number
  /** Not before so many seconds from now. */
  delaySeconds?: number
  /** Instead of the policy's. */
  maxAttempts?: number
  priority?: Priority
  /** The payload is removed after so many days, whatever became of the message. Left out: with the message. */
  payloadRetentionDays?: number
  /** The same in hours, instead of days. */
  payloadRetentionHours?: number
}

const FIELDS = [
  "eventType",
  "payload",
  "contentType",
  "eventId",
  "idempotencyKey",
  "channels",
  "tags",
  "sessionId",
  "metadata",
  "deliverAt",
  "delaySeconds",
  "maxAttempts",
  "priority",
  "payloadRetentionDays",
  "payloadRetentionHours",
] as const

export interface SendOptions {
  /** A client of the package `pg` in a transaction on the store's own database: the message exists if and only if it commits. */
  tx?: unknown
}

export interface BatchOptions extends SendOptions {
  /** The same key and batch again gives the first answers; for at least 24 hours. */
  idempotencyKey?: string
}

export interface SendResult {
  /** The message's id: what receivers see as `webhook-id`. */
  readonly id: string
  readonly receivedAt: Date
  /** Not before then, as `deliverAt` or `delaySeconds` asked; null is at once. */
  readonly deliverAt: Date | null
  /** How many endpoints get it. */
  readonly matched: number
  /** True when the idempotency key had been used: this is the first answer again. */
  readonly duplicate: boolean
}

export interface Message extends Omit<Row, "seq" | "receivedAt" | "deliverAt"> {
  readonly receivedAt: Date
  readonly deliverAt: Date | null
}

export interface MessageQuery extends ContentQuery, PageInput {
  /** False leaves the payloads out. */
  withPayload?: boolean
}

const PRIORITIES: readonly Priority[] = ["high", "normal", "low"]
const MOST_IN_A_BATCH = 1000
const MOST_TAGS = 20
const HOUR_MS = 3_600_000
const LONGEST_RETENTION_DAYS = 3650

export class Messages {
  readonly #context: ResourceContext

  constructor(context: ResourceContext) {
    this.#context = context
  }

  async send(app: string, input: MessageInput, options: SendOptions = {}): Promise<SendResult> {
    const messages = [this.#parse(app, input, "")]
    return this.#accepted(await this.#write(messages, options), messages, options)[0]!
  }

  /** To this endpoint alone, whatever it has asked for. */
  async sendTo(app: string, endpoint: string, input: MessageInput): Promise<SendResult> {
    const message = this.#parse(app, input, "")
    const { id, appId, disabled } = await requireEndpoint(this.#context, app, endpoint)
    // A request that is run again after a crash makes the same id: what it sent then is its answer.
    const before = await this.#context.store.getMessage(appId, message.id)
    if (before !== null) return showAccepted({ ...before, messageId: before.id, duplicate: true })
    if (disabled) throw new PosthornError("conflict", `endpoint "${endpoint}" is disabled; enable it first`)
    const messages = [{ ...message, to: id }]
    return this.#accepted(await this.#write(messages, {}), messages, {})[0]!
  }

  /** All or none, in this order. */
  async sendBatch(
    app: string,
    inputs: readonly MessageInput[],
    options: BatchOptions = {},
  ): Promise<SendResult[]> {
    requireObject(options, "options")
    refuseUnknown(options, ["tx", "idempotencyKey"], "options")
    const { idempotencyKey, ...sending } = options
    if (!Array.isArray(inputs) || inputs.length === 0 || inputs.length > MOST_IN_A_BATCH) {
      throw invalid("messages", `must be a list of 1 to ${MOST_IN_A_BATCH} messages`)
    }
    const parsed = inputs.map((input, i) => this.#parse(app, input, `messages[${i}]`))
    const messages = idempotencyKey === undefined ? parsed : bindBatch(parsed, inputs, idempotencyKey)
    return this.#accepted(await this.#write(messages, sending), messages, sending)
  }

  /** Apart from what follows it, so that there is one asynchronous function for a call, and not two. */
  #write(messages: readonly NewMessage[], options: SendOptions): Promise<Accepted[]> {
    requireObject(options, "options")
    refuseUnknown(options, ["tx"], "options")
    const { tx } = options
    if (tx === null) throw invalid("tx", "must be a client of the package pg, in a transaction")
    return this.#context.store.accept(messages, tx)
  }

  #accepted(
    accepted: readonly Accepted[],
    messages: readonly NewMessage[],
    { tx }: SendOptions,
  ): SendResult[] {
    const lanes = accepted.flatMap((one, i) =>
      one.lanes.map((lane) => ({ ...lane, priority: messages[i]!.priority })),
    )
    // In somebody's transaction nothing is there to be found yet: the poll finds it when that commits.
    if (lanes.length > 0 && tx === undefined) this.#context.wake(lanes)
    return accepted.map(showAccepted)
  }

  /** By id or eventId; rejects with `not_found`. */
  async get(app: string, message: string): Promise<Message> {
    return show(await this.#read(app, message))
  }

  /** Newest first. */
  list(app: string, query: MessageQuery = {}): Listing<Message> {
    return listing(query, (asked) => this.#page(app, asked))
  }

  async #page(app: string, query: MessageQuery): Promise<List<Message>> {
    requireObject(query, "query")
    refuseUnknown(query, [...CONTENT_FIELDS, ...PAGE_FIELDS, "withPayload"], "")
    const content = parseContent(query)
    const page = pageBySeq(query)
    const { id } = await requireApplication(this.#context, app)
    return listPage(
      page,
      (read) => this.#context.store.listMessages({ ...content, appId: id }, read, query.withPayload ?? true),
      ({ seq }) => seq,
      show,
    )
  }

  /** Those of these that are still there, by id. */
  async getMany(ids: readonly string[], withPayload: boolean): Promise<Map<string, Message>> {
    const rows = await this.#context.store.getMessages([...new Set(ids)], withPayload)
    return new Map(rows.map((row) => [row.id, show(row)]))
  }

  /** The payload goes for good; what still waits to be sent ends as dead with the reason `expunged`. */
  async expunge(app: string, message: string): Promise<void> {
    const { store, clock, defaultPolicy, events } = this.#context
    const { id, appId } = await this.#read(app, message)
    await store.expungeMessage(appId, id)
    const page = { limit: 250, order: "ascending", from: null, back: false } as const
    const waiting = await store.listDeliveries({ messageId: id, live: true }, page)
    for (const delivery of waiting) {
      const endpoint = await store.getEndpoint(appId, delivery.endpointId)
      const policy = endpoint === null ? defaultPolicy : policyOf(endpoint, defaultPolicy)
      const now = clock.now()
      const change = expunge(delivery, policy, now)
      const { seq, status, attemptCount } = delivery
      const [applied] = await store.amend([
        { seq, expectedStatus: status, expectedAttemptCount: attemptCount, change },
      ])
      // One that is being sent settles as it must; if it has to be sent again, there is nothing to send.
      if (applied) events.emit(amended(delivery, change, now))
    }
  }

  /** Of every message that fits. Durable; watch it with `tasks.get`. */
  async expungeMany(app: string, query: ContentQuery = {}): Promise<Task> {
    requireObject(query, "query")
    refuseUnknown(query, CONTENT_FIELDS, "")
    const content = parseContent(query)
    const { id } = await requireApplication(this.#context, app)
    return startTask(
      this.#context,
      await newTask(this.#context, "expunge", "application.purge_content", { ...content, appId: id }),
    )
  }

  async #read(app: string, message: string): Promise<Row> {
    const { id } = await requireApplication(this.#context, app)
    const row = typeof message === "string" ? await this.#context.store.getMessage(id, message) : null
    if (row === null) throw notFound("message", String(message))
    return row
  }

  #parse(app: string, input: MessageInput, at: string): NewMessage {
    const field = (name: string) => (at === "" ? name : `${at}.${name}`)
    if (typeof app !== "string" || app === "") throw invalid("application", "must be an id or uid")
    requireObject(input, at === "" ? "message" : at)
    refuseUnknown(input, FIELDS, at)
    if (input.payload === undefined) throw invalid(field("payload"), "is required")
    const { clock } = this.#context
    const now = clock.now()
    const eventType = requireName(input.eventType, field("eventType"))
    const payload = payloadBytes(input.payload, input.contentType, this.#context.maxPayloadBytes, field)
    const priority = input.priority ?? "normal"
    if (!PRIORITIES.includes(priority)) throw invalid(field("priority"), "must be high, normal or low")
    return {
      id: this.#context.ids.make("msg", now),
      orgId: this.#context.orgId,
      app,
      to: null,
      eventType,
      payload: payload.bytes,
      contentType: payload.contentType,
      eventId: optionalName(input.eventId, field("eventId")),
      channels: nameList(input.channels, field("channels"), 10, requireChannel) ?? [],
      tags: nameList(input.tags, field("tags"), MOST_TAGS, requireTag) ?? [],
      sessionId: input.sessionId === undefined ? null : requireText(input.sessionId, field("sessionId"), 256),
      metadata: requireMetadata(input.metadata, field("metadata")),
      priority,
      maxAttempts: optionalWholeNumber(input.maxAttempts, field("maxAttempts"), 1, 100_000),
      receivedAt: now,
      ...deliverAt(input, { now, wall: clock.wallNow() }, field),
      payloadUntil: payloadUntil(input, now, field),
      purgeUnmatchedAt:
        now +
        Math.round(
          (this.#context.defaultPolicy.retention.delivered ?? STANDARD_RETENTION.delivered!).after * 1000,
        ),
      idempotency: idempotency(input, payload, field("idempotencyKey")),
    }
  }
}

function deliverAt(
  input: MessageInput,
  at: Moment,
  field: (name: string) => string,
): Pick<NewMessage, "deliverAt" | "dated" | "wakeAt"> {
  const { delaySeconds } = input
  if (delaySeconds !== undefined) {
    if (input.deliverAt !== undefined)
      throw invalid(field("delaySeconds"), "and deliverAt say the same thing; give one of them")
    const delayMs = requireDelayMs(delaySeconds, field("delaySeconds"))
    return { deliverAt: at.wall + delayMs, dated: false, wakeAt: at.now + delayMs }
  }
  if (input.deliverAt === undefined) return { deliverAt: null, dated: false, wakeAt: at.now }
  const date = requireTime(input.deliverAt, field("deliverAt"))
  return { deliverAt: date, dated: true, wakeAt: steadyTimeOf(date, at) }
}

function payloadUntil(input: MessageInput, now: number, field: (name: string) => string): number | null {
  const { payloadRetentionDays: days, payloadRetentionHours: hours } = input
  if (days !== undefined && hours !== undefined)
    throw invalid(field("payloadRetentionHours"), "and a number of days say the same thing; give one of them")
  if (hours !== undefined)
    return now + HOUR_MS * wholeNumber(hours, field("payloadRetentionHours"), 1, 24 * LONGEST_RETENTION_DAYS)
  if (days === undefined) return null
  return now + 24 * HOUR_MS * wholeNumber(days, field("payloadRetentionDays"), 1, LONGEST_RETENTION_DAYS)
}

/** The key is bound to everything that the caller asked for: another request under the same key is a conflict, not somebody else's answer. */
function idempotency(input: MessageInput, payload: PayloadBytes, field: string): NewMessage["idempotency"] {
  if (input.idempotencyKey === undefined) return null
  const key = requireKey(input.idempotencyKey, field)
  return { key: shortHash(key), digest: shortHash(...asked(input, payload)) }
}

/** Every message has a key of its own, and all are bound to the whole batch: with one message more it is another batch. */
function bindBatch(
  messages: readonly NewMessage[],
  inputs: readonly MessageInput[],
  idempotencyKey: string,
): NewMessage[] {
  const batchKey = requireKey(idempotencyKey, "idempotencyKey")
  const digest = shortHash(
    ...messages.map(({ payload: bytes, contentType }, i) =>
      shortHash(...asked(inputs[i]!, { bytes, contentType })),
    ),
  )
  return messages.map((message, i) => {
    if (message.idempotency !== null)
      throw invalid(
        `messages[${i}].idempotencyKey`,
        "and one of the batch exclude each other; give one of them",
      )
    return { ...message, idempotency: { key: shortHash(`${batchKey}\n${i}`), digest } }
  })
}

function requireKey(value: string, field: string): string {
  const key = requireText(value, field, 256)
  if (key === "") throw invalid(field, "must not be empty")
  return key
}

function asked(
  input: MessageInput,
  { bytes, contentType }: PayloadBytes,
): (string | PayloadBytes["bytes"])[] {
  const { payload: _payload, idempotencyKey: _key, ...rest } = input
  return [JSON.stringify(Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1))), contentType, bytes]
}

function shortHash(...parts: readonly (string | Uint8Array | PayloadBytes["bytes"])[]): Uint8Array {
  const hash = createHash("sha256")
  for (const part of parts) hash.update(part)
  return hash.digest().subarray(0, 16)
}

function showAccepted(accepted: Omit<Accepted, "lanes">): SendResult {
  const { messageId, receivedAt, deliverAt, matched, duplicate } = accepted
  return { id: messageId, receivedAt: date(receivedAt), deliverAt: date(deliverAt), matched, duplicate }
}

function show({ seq: _seq, ...row }: Row): Message {
  return { ...row, receivedAt: date(row.receivedAt), deliverAt: date(row.deliverAt) }
}

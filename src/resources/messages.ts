/** Messages: the events that were accepted. */
import { invalid, PosthornError } from "../core/errors.ts"
import { type InboundRequest, readInbound, writeInbound } from "../core/inbound-request.ts"
import { ifGiven, refuseUnknown, requireBoolean, requireObject } from "../core/input.ts"
import { expunge } from "../core/operate.ts"
import { NOTIFICATIONS_ORG } from "../core/org.ts"
import { cleanTraceparent } from "../core/traceparent.ts"
import { amended } from "../observe/event-stream.ts"
import type { Published } from "../observe/tracing.ts"
import type { Accepted, NewMessage, Message as Row } from "../store/store.ts"
import { amendIfUnchanged } from "./deliveries.ts"
import { bindBatch, type MessageInput, parseMessage } from "./message-input.ts"
import { type BoundedInput, bySeq, type Listing, listing, MOST_SEARCHED, type PageInput } from "./paging.ts"
import { CONTENT_FIELDS, type ContentQuery, parseContent } from "./query.ts"
import {
  date,
  policyFor,
  type ResourceContext,
  requireApplication,
  requireEndpoint,
  requireFound,
} from "./resource-context.ts"
import { startNewTask, type Task } from "./tasks.ts"

export type { MessageInput } from "./message-input.ts"

export interface TraceOptions {
  /** The trace context that the message belongs to, as a W3C header; by default the active one, with `tracing`. An invalid text is ignored. */
  traceparent?: string
}

export interface SendOptions extends TraceOptions {
  /** A client of the package `pg`, in a transaction on the store's database. The message is sent if and only if it commits. */
  tx?: unknown
  /** @internal The request that a source took in. */
  inbound?: InboundRequest
}

export interface BatchOptions extends SendOptions {
  /** The same key and batch return the first results again, for at least 24 hours. */
  idempotencyKey?: string
}

export interface SendResult {
  /** The message's id, which receivers get as `webhook-id`. */
  readonly id: string
  readonly receivedAt: Date
  /** The earliest time of the first attempt, from `deliverAt` or `delaySeconds`; null: now. */
  readonly deliverAt: Date | null
  /** The number of endpoints that get the message. */
  readonly matched: number
  /** The idempotency key was used before: this is the first result again. */
  readonly duplicate: boolean
}

export interface Message extends Omit<Row, "seq" | "receivedAt" | "deliverAt" | "inbound"> {
  readonly receivedAt: Date
  readonly deliverAt: Date | null
  /** The request that a source took in, without its body, which is the payload; null for other messages. */
  readonly inbound: InboundRequest | null
}

export interface MessageQuery extends ContentQuery, BoundedInput, PageInput {
  /** False leaves the payloads out. */
  withPayload?: boolean
}

const MOST_IN_A_BATCH = 1000

export class Messages {
  readonly #context: ResourceContext

  constructor(context: ResourceContext) {
    this.#context = context
  }

  async send(app: string, input: MessageInput, options: SendOptions = {}): Promise<SendResult> {
    const messages = [parseMessage(this.#context, app, input)]
    return (await this.#accept(messages, options))[0]!
  }

  /** Sends to this endpoint only, whatever it subscribes to. */
  async sendTo(
    app: string,
    endpoint: string,
    input: MessageInput,
    options: TraceOptions = {},
  ): Promise<SendResult> {
    const message = parseMessage(this.#context, app, input)
    const { id, appId, disabled } = await requireEndpoint(this.#context, app, endpoint)
    // A request that is repeated after a crash makes the same id, and returns the message that it sent the first time.
    const before = await this.#context.store.getMessage(appId, message.id)
    if (before !== null) return showAccepted({ ...before, messageId: before.id, duplicate: true })
    if (disabled) throw new PosthornError("conflict", `endpoint "${endpoint}" is disabled; enable it first`)
    const messages = [{ ...message, to: id }]
    return (await this.#accept(messages, options))[0]!
  }

  /** All or none, in this order. */
  async sendBatch(
    app: string,
    inputs: readonly MessageInput[],
    options: BatchOptions = {},
  ): Promise<SendResult[]> {
    requireObject(options, "options")
    refuseUnknown(options, ["tx", "traceparent", "idempotencyKey"], "options")
    const { idempotencyKey, ...sending } = options
    if (!Array.isArray(inputs) || inputs.length === 0 || inputs.length > MOST_IN_A_BATCH) {
      throw invalid("messages", `must be a list of 1 to ${MOST_IN_A_BATCH} messages`)
    }
    const parsed = inputs.map((input, i) => parseMessage(this.#context, app, input, `messages[${i}]`))
    const messages = idempotencyKey === undefined ? parsed : bindBatch(parsed, inputs, idempotencyKey)
    return this.#accept(messages, sending)
  }

  /** The one way in: single messages and batches, in a transaction, to one endpoint, by HTTP, and tenant webhooks. */
  async #accept(parsed: readonly NewMessage[], options: SendOptions): Promise<SendResult[]> {
    requireObject(options, "options")
    refuseUnknown(options, ["tx", "traceparent", "inbound"], "options")
    const { tx, inbound } = options
    if (tx === null) throw invalid("tx", "must be a client of the package pg, in a transaction")
    const messages = inbound === undefined ? parsed : parsed.map((one) => takenIn(one, inbound))
    const { orgId, instruments, events } = this.#context
    const startedAt = instruments.now()
    const accepted = await this.#acceptTraced(messages, tx, parseTraceOption(options))
    if (orgId !== NOTIFICATIONS_ORG) {
      instruments.messagesAccepted(accepted, instruments.now() - startedAt)
      events.emit({ type: "messages.accepted", orgId, messages: accepted })
    }
    const lanes = accepted.flatMap((one, i) =>
      one.lanes.map((lane) => ({ ...lane, priority: messages[i]!.priority })),
    )
    // The poll finds messages of a caller's transaction after its commit.
    if (lanes.length > 0 && tx === undefined) this.#context.wake(lanes)
    return accepted.map(showAccepted)
  }

  /** Stores the span's context with the messages; without a span, the caller's. Idempotency does not see it: a repeat is another span. */
  async #acceptTraced(
    messages: readonly NewMessage[],
    tx: unknown,
    caller: string | null,
  ): Promise<Accepted[]> {
    const { store, tracing } = this.#context
    const span = tracing.publishStarted(caller)
    const traceparent = span?.traceparent ?? caller
    const stored = traceparent === null ? messages : messages.map((one) => ({ ...one, traceparent }))
    if (span === null) return store.acceptMany(stored, tx)
    try {
      const accepted = await store.acceptMany(stored, tx)
      span.ended(published(messages, accepted))
      return accepted
    } catch (error) {
      span.failed(error)
      throw error
    }
  }

  /** By id or eventId; rejects with `not_found`. */
  async get(app: string, message: string): Promise<Message> {
    return show(await this.#read(app, message))
  }

  /** Newest first. */
  list(app: string, query: MessageQuery = {}): Listing<Message> {
    const { store } = this.#context
    return listing(query, {
      fields: [...CONTENT_FIELDS, "bounded", "withPayload"],
      by: bySeq,
      read: async ({ withPayload = true, bounded, ...asked }) => {
        const content = parseContent(asked)
        const { id: appId } = await requireApplication(this.#context, app)
        const filter = { ...content, appId }
        if (!ifGiven(bounded, "bounded", requireBoolean))
          return (page) => store.listMessages(filter, page, withPayload)
        return async (page) => {
          const bound = await store.boundMessages(filter, page, MOST_SEARCHED)
          return { rows: await store.listMessages(bound.filter, page, withPayload), end: bound.end }
        }
      },
      show,
    })
  }

  /** By id. Messages that no longer exist are left out. */
  async getMany(ids: readonly string[], withPayload: boolean): Promise<Map<string, Message>> {
    const rows = await this.#context.store.getMessages([...new Set(ids)], withPayload)
    return new Map(rows.map((row) => [row.id, show(row)]))
  }

  /** @internal Payload sizes in bytes by message id. Messages that no longer exist are left out. */
  async payloadSizes(ids: readonly string[]): Promise<Map<string, number>> {
    const sizes = await this.#context.store.getPayloadSizes([...new Set(ids)])
    return new Map(sizes.map(({ messageId, bytes }) => [messageId, bytes]))
  }

  /** Removes the payload, and the request of a source, for good. Deliveries that wait end as dead with the reason `expunged`. */
  async expunge(app: string, message: string): Promise<void> {
    const { store, clock, events } = this.#context
    const { id, appId } = await this.#read(app, message)
    await store.expungeMessage(appId, id)
    const page = { limit: 250, order: "ascending", from: null, back: false } as const
    for (const delivery of await store.listDeliveries({ messageId: id, live: true }, page)) {
      const policy = await policyFor(this.#context, delivery)
      const now = clock.now()
      const change = expunge(delivery, policy, now)
      // A request in flight settles by its outcome. A retry finds no payload and ends.
      if (await amendIfUnchanged(this.#context, delivery, change))
        events.emit(amended(delivery, this.#context.orgId, change, now))
    }
  }

  /** Expunges all matching messages. Durable: watch it with `tasks.get`. */
  async expungeMany(app: string, query: ContentQuery = {}): Promise<Task> {
    requireObject(query, "query")
    refuseUnknown(query, CONTENT_FIELDS, "")
    const content = parseContent(query)
    const { id: appId } = await requireApplication(this.#context, app)
    return startNewTask(this.#context, "expunge", "application.purge_content", { ...content, appId })
  }

  async #read(app: string, message: string): Promise<Row> {
    const { id: appId } = await requireApplication(this.#context, app)
    return requireFound("message", message, (key) => this.#context.store.getMessage(appId, key))
  }
}

function parseTraceOption({ traceparent }: TraceOptions): string | null {
  if (traceparent === undefined) return null
  if (typeof traceparent !== "string") throw invalid("traceparent", "must be a text")
  return cleanTraceparent(traceparent)
}

/** A provider that repeats a delivery may change its headers and the order of its body: the id alone counts. */
function takenIn(message: NewMessage, inbound: InboundRequest): NewMessage {
  const { idempotency } = message
  return {
    ...message,
    inbound: writeInbound(inbound),
    idempotency: idempotency === null ? null : { ...idempotency, digest: idempotency.key },
  }
}

function published(messages: readonly NewMessage[], accepted: readonly Accepted[]): Published {
  return {
    messageIds: accepted.map(({ messageId }) => messageId),
    bytes: messages.reduce((sum, { payload }) => sum + payload.length, 0),
    matched: accepted.reduce((sum, { matched }) => sum + matched, 0),
    duplicates: accepted.filter(({ duplicate }) => duplicate).length,
  }
}

function showAccepted(accepted: Omit<Accepted, "lanes">): SendResult {
  const { messageId, receivedAt, deliverAt, matched, duplicate } = accepted
  return { id: messageId, receivedAt: date(receivedAt), deliverAt: date(deliverAt), matched, duplicate }
}

function show({ seq: _seq, ...row }: Row): Message {
  return {
    ...row,
    receivedAt: date(row.receivedAt),
    deliverAt: date(row.deliverAt),
    inbound: row.inbound === null ? null : readInbound(row.inbound),
  }
}

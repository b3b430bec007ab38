/** Sends a message from a validated request, for Fastify's routes and for the listener of `node:http`. */
import type { IncomingMessage } from "node:http"
import type { FastifyRequest } from "fastify"
import { invalid } from "../core/errors.ts"
import type { MessageInput, SendResult, TraceOptions } from "../resources/messages.ts"
import type { Tenant } from "../tenant.ts"
import { omitNullish, toDate } from "./query-params.ts"
import { rawField } from "./raw-field.ts"
import { RawJson } from "./raw-json.ts"
import { ensureApplication } from "./routes/applications.ts"
import type { MessageIn, MessageOut } from "./schemas/message.ts"

export const SEND_ACCESS = { auth: "org", ownIdempotency: true, isRecorded: false } as const

/** A validated request to send a message. */
export interface MessagePost {
  readonly app: string
  readonly body: MessageIn
  /** The unparsed body. */
  readonly rawBody: Buffer
  readonly idempotencyKey: string | undefined
  readonly trace: TraceOptions
  /** Whether the response contains the payload. */
  readonly withContent: boolean
}

export async function postMessage(
  { messages, applications }: Tenant,
  posted: MessagePost,
): Promise<MessageOut> {
  const { app, body, rawBody, idempotencyKey, trace, withContent } = posted
  const payload = payloadOf(body, rawBody)
  const input = messageInput(body, payload, idempotencyKey)
  // Most messages have none, and skip the await.
  if (body.application) await ensureApplication(applications, app, body.application)
  const sent = await messages.send(app, input, trace)
  return acceptedOut(sent, input, withContent ? payload : null)
}

export function idempotencyKeyOf({ headers }: IncomingMessage | FastifyRequest): string | undefined {
  const key = headers["idempotency-key"]
  return typeof key === "string" ? key : undefined
}

const NO_TRACE: TraceOptions = {}

/** The caller's trace context. Its `tracestate` and `baggage` are not kept. */
export function traceOf({ headers: { traceparent } }: IncomingMessage | FastifyRequest): TraceOptions {
  return typeof traceparent === "string" ? { traceparent } : NO_TRACE
}

/** The payload's original bytes: JavaScript would round large numbers. */
export function payloadOf({ payload, data }: MessageIn, json: Buffer): Buffer | null {
  if (payload != null) return rawField(json, "payload")
  return data == null ? null : rawField(json, "data")
}

export function messageInput(
  body: MessageIn,
  asSent: Buffer | null,
  idempotencyKey: string | undefined,
): MessageInput {
  const {
    data,
    application: _application,
    transformationsParams,
    payloadRetentionPeriod,
    deliverAt,
    ...rest
  } = body
  const raw = transformationsParams?.rawPayload
  const contentType = transformationsParams?.headers?.["content-type"]
  const payload = raw === undefined ? asSent : new TextEncoder().encode(raw)
  if (payload === null) throw invalid("payload", "is required")
  return {
    ...omitNullish<MessageInput>({
      ...rest,
      idempotencyKey,
      contentType: contentType ?? "application/json",
      deliverAt: toDate(deliverAt),
      payloadRetentionDays: payloadRetentionPeriod,
    }),
    eventType: body.eventType,
    payload,
  }
}

/** Made from the input: reading the message from the store is not necessary. */
export function acceptedOut(
  { id, receivedAt, deliverAt, matched }: SendResult,
  input: MessageInput,
  payload: Buffer | null,
): MessageOut {
  const { eventType, eventId, channels, tags: words, sessionId, metadata, priority } = input
  return {
    id,
    eventType,
    ...(eventId === undefined ? {} : { eventId }),
    payload: payload === null ? {} : new RawJson(payload.toString()),
    channels: channels === undefined ? null : [...channels],
    tags: words === undefined || words.length === 0 ? null : [...words],
    timestamp: receivedAt,
    ...(deliverAt === null ? {} : { deliverAt }),
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(metadata === undefined ? {} : { metadata }),
    priority: priority ?? "normal",
    matched,
  }
}

/** The requests that the raw client writes: messages for the API, and deliveries as the receiver gets them. */
import { randomUUID } from "node:crypto"
import { eventType } from "./library.ts"
import { bodyOf, writeOrdinal } from "./payload.ts"
import type { Prepared } from "./raw-client.ts"

export interface Posts {
  readonly origin: string
  readonly path: string
  readonly key: string
  /** The number of event types. */
  readonly endpoints: number
  /** Gives every message an idempotency key, as SDKs do. */
  readonly hasIdempotencyKey?: boolean
}

const PLACEHOLDER_UUID = "00000000-0000-4000-8000-000000000000"

export function prepareMessage({ origin, path, key, endpoints, hasIdempotencyKey = false }: Posts): Prepared {
  const opening = `{"eventType":"${eventType(0)}","payload":`
  const more = [
    `authorization: Bearer ${key}`,
    ...(hasIdempotencyKey ? [`idempotency-key: auto_${PLACEHOLDER_UUID}`] : []),
  ]
  const head = headOf(origin, path, more, opening.length + bodyOf(0).length + 1)
  const before = head + opening
  const typeAt = before.indexOf(eventType(0))
  const uuidAt = before.indexOf(PLACEHOLDER_UUID)
  return {
    origin,
    request: Buffer.concat([Buffer.from(before), bodyOf(0), Buffer.from("}")]),
    write: (request, ordinal) => {
      writeOrdinal(request, ordinal, before.length)
      request.write(eventType(ordinal % endpoints), typeAt)
      if (hasIdempotencyKey) request.write(randomUUID(), uuidAt)
    },
  }
}

/** A webhook as a provider sends it to a source. The path behind the source's is that of the receiver. */
export function prepareInbound(origin: string, source: string): Prepared {
  return preparePayload(origin, `${source}/ok`)
}

export function prepareDelivery(origin: string): Prepared {
  return preparePayload(origin, "/ok")
}

function preparePayload(origin: string, path: string): Prepared {
  const head = headOf(origin, path, [], bodyOf(0).length)
  return {
    origin,
    request: Buffer.concat([Buffer.from(head), bodyOf(0)]),
    write: (request, ordinal) => writeOrdinal(request, ordinal, head.length),
  }
}

function headOf(origin: string, path: string, more: readonly string[], bodyBytes: number): string {
  const lines = [
    `POST ${path} HTTP/1.1`,
    `host: ${new URL(origin).host}`,
    ...more,
    "content-type: application/json",
    `content-length: ${bodyBytes}`,
  ]
  return `${lines.join("\r\n")}\r\n\r\n`
}

/** The message that a request to a source becomes. */
import { hash } from "node:crypto"
import type { InboundRequest } from "../core/inbound-request.ts"
import { headerOf, type Place, type ReceivedRequest, textAt } from "../core/received-request.ts"
import { secretHeaderOf } from "../core/verification-schemes.ts"
import type { MessageInput, SendOptions } from "../resources/messages.ts"
import type { OpenSource } from "./source-ring.ts"

const LONGEST_EVENT_TYPE = 256
/** A longer id is replaced by its digest: an idempotency key has a limit. */
const LONGEST_ID = 128
const MEDIA_TYPE = /^[\x21-\x7e]+\/[\x20-\x7e]+$/
const LONGEST_MEDIA_TYPE = 255

export function inboundMessage(source: OpenSource, request: ReceivedRequest): [MessageInput, SendOptions] {
  const { headers, body } = request
  const idempotencyKey = idempotencyKeyOf(source, request)
  const traceparent = headerOf(headers, "traceparent")
  return [
    {
      eventType: eventTypeOf(source, request),
      payload: body,
      contentType: mediaType(headerOf(headers, "content-type")),
      ...(idempotencyKey === null ? {} : { idempotencyKey }),
    },
    { inbound: inboundRequest(source, request), ...(traceparent === undefined ? {} : { traceparent }) },
  ]
}

/** Without the header that has the secret itself. */
function inboundRequest({ id, scheme }: OpenSource, request: ReceivedRequest): InboundRequest {
  const { method, path, query, headers } = request
  const secret = secretHeaderOf(scheme)
  return {
    sourceId: id,
    ...{ method, path, query },
    headers: headers.filter(([name]) => name.toLowerCase() !== secret),
  }
}

function eventTypeOf({ record: { name, eventType } }: OpenSource, request: ReceivedRequest): string {
  if (typeof eventType === "string") return eventType
  const found = eventType === null ? "" : (textAt(request, eventType) ?? "")
  return found === ""
    ? `inbound.${name}`
    : found.slice(0, LONGEST_EVENT_TYPE).replaceAll(/[^a-zA-Z0-9\-_.]/g, ".")
}

function idempotencyKeyOf({ id, deliveryId }: OpenSource, request: ReceivedRequest): string | null {
  const given = firstText(request, deliveryId)
  if (given === null) return null
  return `${id}\n${given.length <= LONGEST_ID ? given : hash("sha256", given)}`
}

function firstText(request: ReceivedRequest, places: readonly Place[]): string | null {
  for (const place of places) {
    const text = textAt(request, place)
    if (text) return text
  }
  return null
}

/** The header itself is kept as it came; this is what HTTP endpoints get. */
function mediaType(header: string | undefined): string {
  const isOne = header !== undefined && header.length <= LONGEST_MEDIA_TYPE && MEDIA_TYPE.test(header)
  return isOne ? header : "application/octet-stream"
}

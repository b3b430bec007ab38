/** Writes the head of a POST request. The part that is the same for all requests of an endpoint is cached. */
import { HEADER_NAME, NOT_IN_A_HEADER } from "../../core/header.ts"
import type { HeaderPair } from "../../core/inbound-request.ts"
import type { OutboundRequest, WebhookHead } from "../transport.ts"

/** The `Host` header and the request target. */
export interface RequestLine {
  readonly host: string
  readonly path: string
}

export class RequestHeads {
  /** By the headers object of the endpoint's version. Null: a header that cannot be sent. */
  readonly #cache = new WeakMap<
    OutboundRequest["headers"],
    { readonly url: string; readonly text: string | null }
  >()

  /** Null: a header that cannot be sent. */
  of(request: OutboundRequest, line: RequestLine): string | null {
    const common = this.#commonPart(request, line)
    const webhook = request.webhook === undefined ? "" : webhookLines(request.webhook)
    if (common === null || webhook === null) return null
    return `${common}${webhook}content-length: ${request.body.length}\r\n\r\n`
  }

  #commonPart({ url, headers }: OutboundRequest, { host, path }: RequestLine): string | null {
    const cached = this.#cache.get(headers)
    if (cached?.url === url) return cached.text
    // `identity`, because nothing is decompressed: 50 kB of gzip can become 52 MB.
    const sent = { host, ...headers, connection: "keep-alive", "accept-encoding": "identity" }
    const entries = Object.entries(sent)
    const text = entries.every(canBeSent) ? `POST ${path} HTTP/1.1\r\n${linesOf(entries)}` : null
    this.#cache.set(headers, { url, text })
    return text
  }
}

/**
 * With the names of Standard Webhooks and of Svix. Null: a value with a line break or another forbidden character. The signature is base64, and
 * a traceparent hexadecimal. Headers that a stranger sent to a source do not fail the request: those that cannot be sent are left out.
 */
function webhookLines(webhook: WebhookHead): string | null {
  const { contentType, messageId: id, timestampSeconds, signature, authorization, traceparent } = webhook
  if (NOT_IN_A_HEADER.test(contentType) || NOT_IN_A_HEADER.test(id)) return null
  if (authorization !== null && NOT_IN_A_HEADER.test(authorization)) return null
  const login = authorization === null ? "" : `authorization: ${authorization}\r\n`
  const own = `content-type: ${contentType}\r\nidempotency-key: ${id}\r\n`
  const standard = `webhook-id: ${id}\r\nwebhook-timestamp: ${timestampSeconds}\r\nwebhook-signature: ${signature}\r\n`
  const svix = `svix-id: ${id}\r\nsvix-timestamp: ${timestampSeconds}\r\nsvix-signature: ${signature}\r\n`
  const trace = traceparent === null ? "" : `traceparent: ${traceparent}\r\n`
  const passed = webhook.passedOn.length === 0 ? "" : linesOf(webhook.passedOn.filter(canBeSent))
  return own + standard + svix + login + trace + passed
}

function canBeSent([name, value]: HeaderPair): boolean {
  return HEADER_NAME.test(name) && !NOT_IN_A_HEADER.test(value)
}

function linesOf(headers: readonly HeaderPair[]): string {
  return headers.map(([name, value]) => `${name}: ${value}\r\n`).join("")
}

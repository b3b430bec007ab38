/**
 * The transport for `notify:CHANNEL`, the URLs of Posthorn's own notifications. It asks for the notification in the form of its channel,
 * and sends it: requests through the HTTP transport and its egress guard, mails to the SMTP server that the operator configured.
 */
import type { Clock } from "../../core/clock.ts"
import { fullAddress } from "../../core/input.ts"
import type { AttemptSpan } from "../../observe/tracing.ts"
import { TransportError } from "../error.ts"
import { INTERRUPTED, withoutResponse } from "../result.ts"
import type { OutboundRequest, SchemeTransport, TransportResult } from "../transport.ts"
import type { Outgoing, OutgoingMail, OutgoingRequest } from "./outgoing.ts"
import { withoutSecrets } from "./redact.ts"
import { sendMail } from "./smtp.ts"

export const NOTIFY_SCHEME = "notify:"

/** Null: the channel does not exist. A rejection is a fault of our own, such as a store that cannot be read. */
export type Compose = (channel: string, request: OutboundRequest) => Promise<Outgoing | null>

const DEADLINE = new TransportError("timeout", "the attempt's deadline passed")

export class NotifyTransport implements SchemeTransport {
  readonly schemes = [NOTIFY_SCHEME]
  readonly isInternal = true
  readonly #clock: Clock
  readonly #http: SchemeTransport
  readonly #compose: Compose
  readonly #mails = new Set<AbortController>()
  /** A composition that spans an interruption is not sent. */
  #interruptions = 0

  constructor(clock: Clock, http: SchemeTransport, compose: Compose) {
    this.#clock = clock
    this.#http = http
    this.#compose = compose
  }

  urlProblem(): Promise<string> {
    return Promise.resolve(fullAddress(this.#http.schemes))
  }

  async send(request: OutboundRequest, span: AttemptSpan | null = null): Promise<TransportResult> {
    const interruptions = this.#interruptions
    const outgoing = await this.#compose(request.url.slice(NOTIFY_SCHEME.length), request)
    if (interruptions !== this.#interruptions) return withoutResponse({ kind: "interrupted" }, "interrupted")
    if (outgoing === null) {
      const detail = "the channel was deleted"
      return withoutResponse({ kind: "ack", result: "permanent", detail }, detail)
    }
    return this.sendComposed(request, outgoing, span)
  }

  /** Needs no store: for notifications that are sent while it is down. */
  async sendComposed(
    request: OutboundRequest,
    outgoing: Outgoing,
    span: AttemptSpan | null = null,
  ): Promise<TransportResult> {
    const result =
      outgoing.via === "http"
        ? await this.#post(request, outgoing, span)
        : await this.#mail(request, outgoing)
    return withoutSecrets(result, outgoing.secrets)
  }

  #post(
    request: OutboundRequest,
    { url, body }: OutgoingRequest,
    span: AttemptSpan | null,
  ): Promise<TransportResult> {
    if (body === null) return this.#http.send({ ...request, url }, span)
    const { webhook: _signed, ...unsigned } = request
    const headers = { ...request.headers, "content-type": "application/json" }
    return this.#http.send({ ...unsigned, url, headers, body }, span)
  }

  async #mail(request: OutboundRequest, { server, mail }: OutgoingMail): Promise<TransportResult> {
    const controller = new AbortController()
    const timer = this.#clock.setTimer(request.timeoutMs, () => controller.abort(DEADLINE))
    this.#mails.add(controller)
    try {
      return await sendMail(server, mail, { ...request, signal: controller.signal })
    } finally {
      timer.cancel()
      this.#mails.delete(controller)
    }
  }

  reachOf(): null {
    return null
  }

  /** The HTTP transport is told by the router. */
  forget(): void {}

  interrupt(): number {
    this.#interruptions++
    const mails = [...this.#mails]
    for (const controller of mails) controller.abort(INTERRUPTED)
    return mails.length
  }

  async close(): Promise<void> {
    this.interrupt()
  }
}

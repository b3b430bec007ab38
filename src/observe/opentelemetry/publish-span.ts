/** The span of one call that sends messages. Its context is the messages' creation context. */
import { type Span, SpanStatusCode } from "@opentelemetry/api"
import { describe, PosthornError } from "../../core/errors.ts"
import type { Published, PublishSpan } from "../tracing.ts"
import type { PublishAttributes } from "./attributes.ts"
import { safely } from "./safely.ts"

export const PUBLISH_NAME = "publish webhooks"

export const PUBLISHING: PublishAttributes = {
  "messaging.system": "posthorn",
  "messaging.operation.name": "publish",
  "messaging.operation.type": "send",
  "messaging.destination.name": "webhooks",
}

export class RecordedPublish implements PublishSpan {
  readonly traceparent: string
  readonly #span: Span

  constructor(span: Span, traceparent: string) {
    this.#span = span
    this.traceparent = traceparent
  }

  ended({ messageIds, bytes, matched, duplicates }: Published): void {
    const [id] = messageIds
    // The conventions: a call for one message names it, and only a batch has a count.
    const messages: PublishAttributes =
      messageIds.length === 1
        ? { "messaging.message.id": id!, "messaging.message.body.size": bytes }
        : { "messaging.batch.message_count": messageIds.length }
    this.#end({
      ...messages,
      "posthorn.message.matched": matched,
      "posthorn.message.duplicates": duplicates,
    })
  }

  failed(error: unknown): void {
    const type = error instanceof PosthornError ? error.code : "_OTHER"
    safely(() => this.#span.setStatus({ code: SpanStatusCode.ERROR, message: describe(error) }))
    this.#end({ "error.type": type })
  }

  #end(attributes: PublishAttributes): void {
    safely(() => this.#span.setAttributes(attributes))
    safely(() => this.#span.end())
  }
}

/** Of a trace that is not sampled: its context is passed on, and nothing is recorded. */
export class UnrecordedPublish implements PublishSpan {
  readonly traceparent: string

  constructor(traceparent: string) {
    this.traceparent = traceparent
  }

  ended(): void {}

  failed(): void {}
}

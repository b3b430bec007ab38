/** A sampler for attempts that are traces of their own: it decides about them as about a span of their message's trace. */
import type { Attributes, Context, Link, SpanKind } from "@opentelemetry/api"
import { trace } from "@opentelemetry/api"
import type { Sampler, SamplingResult } from "@opentelemetry/sdk-trace"

/** Without it, 1 % of traces would mean 1 % of the retries of 1 % of the messages. */
export class RetrySampler implements Sampler {
  readonly #sampler: Sampler

  constructor(sampler: Sampler) {
    this.#sampler = sampler
  }

  shouldSample(
    context: Context,
    traceId: string,
    name: string,
    kind: SpanKind,
    attributes: Attributes,
    links: Link[],
  ): SamplingResult {
    const [link] = links
    if (link === undefined || trace.getSpanContext(context) !== undefined)
      return this.#sampler.shouldSample(context, traceId, name, kind, attributes, links)
    const linked = trace.setSpanContext(context, link.context)
    return this.#sampler.shouldSample(linked, link.context.traceId, name, kind, attributes, links)
  }

  toString(): string {
    return `Retry{${this.#sampler}}`
  }
}

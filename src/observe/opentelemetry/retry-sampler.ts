/** A sampler for attempts that are traces of their own: sampled if and only if the message that they link to is. */
import type { Attributes, Context, Link, SpanKind } from "@opentelemetry/api"
import { TraceFlags, trace } from "@opentelemetry/api"
import { type Sampler, SamplingDecision, type SamplingResult } from "@opentelemetry/sdk-trace"

/** Without it, 1 % of traces would mean 1 % of the retries of 1 % of the messages. */
export class RetrySampler implements Sampler {
  readonly #others: Sampler

  constructor(others: Sampler) {
    this.#others = others
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
      return this.#others.shouldSample(context, traceId, name, kind, attributes, links)
    const isSampled = (link.context.traceFlags & TraceFlags.SAMPLED) !== 0
    return { decision: isSampled ? SamplingDecision.RECORD_AND_SAMPLED : SamplingDecision.NOT_RECORD }
  }

  toString(): string {
    return `Retry{${this.#others}}`
  }
}

/**
 * Tracing with OpenTelemetry's API, on the tracer provider that the process has registered. Loaded only if tracing is asked for.
 *
 * The first attempt is a child of the message's creation context. Every other attempt is a trace of its own with a link to it: a retry may be
 * days later, and no trace should last that long.
 */
import {
  type Context,
  context,
  isSpanContextValid,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  TraceFlags,
  type Tracer,
  trace,
} from "@opentelemetry/api"
import { parseTraceparent, type TraceContext, writeTraceparent } from "../../core/traceparent.ts"
import type { AttemptSpan, PublishSpan, TracedAttempt, Tracing } from "../tracing.ts"
import { RecordedAttempt, startOf } from "./attempt-span.ts"
import { PUBLISH_NAME, PUBLISHING, RecordedPublish, UnrecordedPublish } from "./publish-span.ts"
import { safely } from "./safely.ts"

export class OpenTelemetryTracing implements Tracing {
  readonly #tracer: Tracer

  constructor(version: string) {
    this.#tracer = trace.getTracer("posthorn", version)
  }

  publishStarted(traceparent: string | null): PublishSpan | null {
    return safely(() => this.#publishStarted(traceparent))
  }

  #publishStarted(caller: string | null): PublishSpan | null {
    const parent = caller === null ? context.active() : contextOf(parseTraceparent(caller))
    const options = { kind: SpanKind.PRODUCER, attributes: { ...PUBLISHING } }
    const span = this.#tracer.startSpan(PUBLISH_NAME, options, parent)
    const spanContext = span.spanContext()
    // Nobody has registered a tracer provider.
    if (!isSpanContextValid(spanContext)) return null
    const traceparent = traceparentOf(spanContext)
    return span.isRecording() ? new RecordedPublish(span, traceparent) : new UnrecordedPublish(traceparent)
  }

  attemptStarted(attempt: TracedAttempt): AttemptSpan | null {
    return safely(() => this.#attemptStarted(attempt))
  }

  #attemptStarted(attempt: TracedAttempt): AttemptSpan | null {
    const { delivery } = attempt
    const created = delivery.traceparent === null ? null : parseTraceparent(delivery.traceparent)
    // The sampler has decided about this message: an attempt that is not sampled costs nothing more.
    if (created !== null && !created.isSampled) return null
    // A first attempt that probes a breaker is a child, too. After a stall an earlier request may have a span already, and so
    // may it after a reset that an operator typed: that keeps the time of the last attempt.
    const { attemptCount, lastAttemptedAt, manual, stalls } = delivery
    const isChild = attemptCount === 0 && lastAttemptedAt === null && !manual && stalls === 0
    const links = created === null || isChild ? [] : [{ context: spanContextOf(created) }]
    const { name, attributes } = startOf(attempt)
    const options = { kind: SpanKind.CLIENT, attributes, links }
    const span = this.#tracer.startSpan(name, options, isChild ? contextOf(created) : ROOT_CONTEXT)
    return span.isRecording() ? new RecordedAttempt(span, traceparentOf(span.spanContext())) : null
  }
}

function contextOf(created: TraceContext | null): Context {
  return created === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, spanContextOf(created))
}

function spanContextOf({ traceId, spanId, isSampled }: TraceContext): SpanContext {
  return { traceId, spanId, traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE, isRemote: true }
}

function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): string {
  return writeTraceparent({ traceId, spanId, isSampled: (traceFlags & TraceFlags.SAMPLED) !== 0 })
}

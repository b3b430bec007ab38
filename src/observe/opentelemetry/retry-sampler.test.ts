import { ROOT_CONTEXT, SpanKind, TraceFlags, trace } from "@opentelemetry/api"
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  type Sampler,
  SamplingDecision,
  TraceIdRatioBasedSampler,
} from "@opentelemetry/sdk-trace"
import { expect, test } from "vitest"
import { RetrySampler } from "./retry-sampler.ts"

/** A ratio of a half samples the first and not the second. */
const LOW = "00000000000000000000000000000001"
const HIGH = "ffffffff000000000000000000000001"

const on = new AlwaysOnSampler()
const off = new AlwaysOffSampler()
const half = new TraceIdRatioBasedSampler(0.5)
const parentBased = (root: Sampler) => new ParentBasedSampler({ root })

const contextOf = (traceId: string, isSampled: boolean) => ({
  traceId,
  spanId: "00f067aa0ba902b7",
  traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
  isRemote: true,
})

/** Whether a retry of a message is sampled. The retry's own trace has the other id. */
function isSampled(sampler: Sampler, created: string, isCreatedSampled: boolean): boolean {
  const links = [{ context: contextOf(created, isCreatedSampled) }]
  const own = created === LOW ? HIGH : LOW
  const { decision } = new RetrySampler(sampler).shouldSample(
    ROOT_CONTEXT,
    own,
    "POST",
    SpanKind.CLIENT,
    {},
    links,
  )
  return decision === SamplingDecision.RECORD_AND_SAMPLED
}

test.each([
  ["always_on", parentBased(on)],
  ["always_off", parentBased(off)],
  ["traceidratio", parentBased(half)],
])("with parentbased_%s a retry is sampled if and only if its message is", (_, sampler) => {
  for (const created of [LOW, HIGH]) {
    expect(isSampled(sampler, created, true)).toBe(true)
    expect(isSampled(sampler, created, false)).toBe(false)
  }
})

test("with always_off no retry is sampled, whatever its message is", () => {
  for (const created of [LOW, HIGH]) expect(isSampled(off, created, true)).toBe(false)
})

test("with always_on every retry is sampled", () => {
  for (const created of [LOW, HIGH]) expect(isSampled(on, created, true)).toBe(true)
})

test("with traceidratio the trace of the message decides, so that a message has all retries or none", () => {
  for (const isCreatedSampled of [true, false]) {
    expect(isSampled(half, LOW, isCreatedSampled)).toBe(true)
    expect(isSampled(half, HIGH, isCreatedSampled)).toBe(false)
  }
})

test("a span with a parent is decided about by its parent, and a span without a link by its own trace", () => {
  const sampler = new RetrySampler(parentBased(half))
  const parent = trace.setSpanContext(ROOT_CONTEXT, contextOf(HIGH, true))
  const links = [{ context: contextOf(HIGH, false) }]
  const decide = (context: typeof parent, traceId: string, given: typeof links) =>
    sampler.shouldSample(context, traceId, "POST", SpanKind.CLIENT, {}, given).decision
  expect(decide(parent, HIGH, links)).toBe(SamplingDecision.RECORD_AND_SAMPLED)
  expect(decide(ROOT_CONTEXT, LOW, [])).toBe(SamplingDecision.RECORD_AND_SAMPLED)
  expect(decide(ROOT_CONTEXT, HIGH, [])).toBe(SamplingDecision.NOT_RECORD)
})

/** Filters of the lists of messages, deliveries and attempts. */
import { invalid } from "../core/errors.ts"
import {
  ifGiven,
  nameList,
  refuseUnknown,
  requireChannel,
  requireObject,
  requireTag,
  requireText,
  requireTime,
} from "../core/input.ts"
import type { Content, Span } from "../store/store.ts"

export interface ContentQuery {
  /** One type, or any of several. */
  eventType?: string | readonly string[]
  channel?: string
  tag?: string
  /** At or after. */
  since?: Date | number
  /** Before. */
  until?: Date | number
}

export type SpanQuery = Pick<ContentQuery, "since" | "until">

export function parseSpan(span: SpanQuery): Span {
  requireObject(span, "span")
  refuseUnknown(span, ["since", "until"], "")
  return toSpan(span)
}

function toSpan({ since, until }: SpanQuery): Span {
  return {
    since: ifGiven(since, "since", requireTime),
    until: ifGiven(until, "until", requireTime),
  }
}

export const CONTENT_FIELDS = ["eventType", "channel", "tag", "since", "until"] as const

export function parseContent({ eventType, channel, tag, ...span }: ContentQuery): Content & Span {
  const types = typeof eventType === "string" ? [requireText(eventType, "eventType", 256)] : eventType
  return {
    eventTypes: nameList(types, "eventType", 1000) ?? undefined,
    channel: ifGiven(channel, "channel", requireChannel),
    tag: ifGiven(tag, "tag", requireTag),
    ...toSpan(span),
  }
}

export function optionalText(value: unknown, field: string): void {
  if (value !== undefined) requireText(value, field, 256)
}

/** One value or a list of values. An empty list is refused: it would find nothing. */
export function someOf<T extends string>(
  value: unknown,
  field: string,
  known: readonly T[],
): readonly T[] | undefined {
  if (value === undefined) return undefined
  const values = [value].flat() as T[]
  if (values.length > 0 && values.every((one) => known.includes(one))) return values
  throw invalid(field, `must be one of ${known.join(", ")}, or a list of them`)
}

/** The hundreds of an HTTP status; 0: no response. */
export const RESPONSE_CLASSES = [0, 100, 200, 300, 400, 500] as const
export type ResponseClass = (typeof RESPONSE_CLASSES)[number]

/** The header `traceparent` of W3C Trace Context: which span of which trace, and whether the trace is sampled. */

export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** 16 hexadecimal digits. */
  readonly spanId: string
  readonly isSampled: boolean
}

/** Version, trace, span, flags. A later version may append more. */
const TRACEPARENT = /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(-.*)?$/

/** Null for a text that is not valid: the standard says to ignore it, and to begin a new trace. */
export function parseTraceparent(text: string): TraceContext | null {
  const [, version, traceId, spanId, flags, more] = TRACEPARENT.exec(text) ?? []
  if (flags === undefined || (version === "00" && more !== undefined)) return null
  return { traceId: traceId!, spanId: spanId!, isSampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

export function writeTraceparent({ traceId, spanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`
}

/** As it is stored and sent: of version 00, without flags that this version does not know. */
export function cleanTraceparent(text: string | null): string | null {
  const parsed = text === null ? null : parseTraceparent(text)
  return parsed === null ? null : writeTraceparent(parsed)
}

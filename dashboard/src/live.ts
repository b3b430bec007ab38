/** The live figures: one summary a second of the event stream, and whether the stream is connected. */
import { signal } from "@preact/signals"
import { follow } from "./follow.ts"
import { refresh } from "./refresh.ts"
import type { StreamEvent, StreamState } from "./stream.ts"

export const streamState = signal<StreamState>({ kind: "connecting" })

/** Counts of one period; its times are of this browser's clock. */
export interface Summary {
  readonly from: number
  readonly to: number
  readonly accepted: number
  /** Events by their type, such as `delivery.delivered`. */
  readonly counts: { readonly [type: string]: number }
  readonly failedAttempts: number
}

/** Five minutes. */
const KEPT = 300
export const summaries = signal<readonly Summary[]>([])

/** Since when no period without a summary is missing: nothing happened in it. Null while the stream is not connected. */
export const liveSince = signal<number | null>(null)

let end: (() => void) | null = null

export function startLive(): void {
  stopLive()
  end = follow("/api/v1/events?summary_ms=1000", { onEvents: take, onState: setState })
}

export function stopLive(): void {
  end?.()
  end = null
}

function setState(state: StreamState): void {
  streamState.value = state
  liveSince.value = state.kind === "live" ? Date.now() : null
  // Read the changes of the time without a stream.
  if (state.kind === "live") refresh()
}

function take(events: readonly StreamEvent[]): void {
  const added: Summary[] = []
  let somethingHappened = false
  for (const { kind, data } of events) {
    if (kind !== "summary") continue
    const { from, to, accepted, counts, failedAttempts } = data
    const behind = clockDifference(to)
    added.push({ from: from + behind, to: to + behind, accepted, counts, failedAttempts })
    somethingHappened ||= accepted > 0 || Object.keys(counts).length > 0
  }
  if (added.length > 0) summaries.value = [...summaries.value, ...added].slice(-KEPT)
  if (somethingHappened || added.length < events.length) refresh()
}

/** How far the server's clock is behind, with the shortest latency that was seen. */
let differenceMs: number | null = null
/** A larger latency means that a clock was set. */
const LONGEST_LATENCY_MS = 5000

function clockDifference(to: number): number {
  const seen = Date.now() - to
  const isSet = differenceMs === null || seen - differenceMs > LONGEST_LATENCY_MS
  differenceMs = isSet ? seen : Math.min(differenceMs!, seen)
  return differenceMs
}

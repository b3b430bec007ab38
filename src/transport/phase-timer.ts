/** Measures the phases of a request. A request on a reused connection has only the last of them. */
import type { AttemptTiming } from "../core/attempt-timing.ts"
import type { AttemptPhase } from "../observe/tracing.ts"

export class PhaseTimer implements AttemptTiming {
  dnsMs: number | null = null
  connectMs: number | null = null
  tlsMs: number | null = null
  firstByteMs: number | null = null
  /** The end of the phase before. */
  #since: number

  constructor(now: number) {
    this.#since = now
  }

  /** The first report of a phase counts: two of several addresses may connect. */
  reached(phase: AttemptPhase, now: number): void {
    const field = FIELDS[phase]
    if (this[field] !== null) return
    this[field] = now - this.#since
    this.#since = now
  }

  /** The request was moved to a fresh connection. */
  restart(now: number): void {
    this.dnsMs = this.connectMs = this.tlsMs = this.firstByteMs = null
    this.#since = now
  }
}

const FIELDS = {
  resolved: "dnsMs",
  connected: "connectMs",
  secured: "tlsMs",
  first_byte: "firstByteMs",
} as const satisfies { readonly [P in AttemptPhase]: keyof AttemptTiming }

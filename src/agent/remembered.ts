/**
 * Final outcomes whose commit the server has not confirmed. When such a delivery comes again, on the next connection, the agent repeats
 * the outcome and does not run the handler again.
 */
import { BoundedCache } from "../core/bounded-cache.ts"
import type { Clock } from "../core/clock.ts"
import type { AgentOutcome } from "./outcome.ts"

const KEPT_MS = 3_600_000
/** Room for 8000 outcomes without a response, and for at least 46 with the largest. */
const MOST_BYTES = 8 * 1024 * 1024
const ENTRY_BYTES = 1024

/** Which attempt of a delivery; `manual`: an operator asked for it. */
export interface Attempt {
  readonly attempt: number
  readonly manual: boolean
}

interface Known extends Attempt {
  readonly outcome: AgentOutcome
  readonly until: number
}

export class Remembered {
  readonly #clock: Clock
  readonly #known = new BoundedCache<string, Known>(MOST_BYTES)

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** A transient outcome is not remembered: the delivery is to be tried again. */
  keep(deliveryId: string, { attempt, manual }: Attempt, outcome: AgentOutcome): void {
    if (outcome.result === "transient") return
    const { body = "", base64 = "" } = outcome.response ?? {}
    const until = this.#clock.elapsedMs() + KEPT_MS
    this.#known.set(
      deliveryId,
      { outcome, attempt, manual, until },
      ENTRY_BYTES + body.length + base64.length,
    )
  }

  /** An operator who retries a delivery starts it anew, and its attempts count from 1 again. */
  find(deliveryId: string, { attempt, manual }: Attempt): AgentOutcome | null {
    const known = this.#known.get(deliveryId)
    if (known === undefined || this.#clock.elapsedMs() >= known.until) return null
    const isAnew = attempt < known.attempt || (manual && !known.manual)
    return isAnew ? null : known.outcome
  }

  forget(deliveryId: string): void {
    this.#known.delete(deliveryId)
  }
}

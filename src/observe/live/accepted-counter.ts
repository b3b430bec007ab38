/** Counts accepted messages by application, while this process or another one follows summaries, and passes the counts on in batches. */
import type { Clock } from "../../core/clock.ts"
import type { EventSubscriber, InternalEvent } from "../event-stream.ts"
import type { AcceptedCount } from "../process-channel.ts"

/** Less than the shortest period of summaries. */
const GATHER_MS = 200

export interface AcceptedCounterParts {
  readonly clock: Clock
  /** Asked for each message: without readers, nothing is counted. */
  isWanted(): boolean
  passOn(counts: readonly AcceptedCount[]): void
}

export class AcceptedCounter implements EventSubscriber {
  readonly #parts: AcceptedCounterParts
  readonly #counts = new Map<string, { readonly orgId: string; messages: number }>()
  #isGathering = false

  constructor(parts: AcceptedCounterParts) {
    this.#parts = parts
  }

  handle(event: InternalEvent): void {
    if (event.type !== "messages.accepted" || !this.#parts.isWanted()) return
    for (const { appId, duplicate } of event.messages) if (!duplicate) this.#add(event.orgId, appId)
    if (this.#isGathering || this.#counts.size === 0) return
    this.#isGathering = true
    this.#parts.clock.setTimer(GATHER_MS, () => this.#flush())
  }

  #add(orgId: string, appId: string): void {
    const known = this.#counts.get(appId)
    if (known === undefined) this.#counts.set(appId, { orgId, messages: 1 })
    else known.messages++
  }

  #flush(): void {
    const counts = [...this.#counts].map(([appId, { orgId, messages }]) => [orgId, appId, messages] as const)
    this.#counts.clear()
    this.#isGathering = false
    this.#parts.passOn(counts)
  }
}

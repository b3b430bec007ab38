/**
 * Gives up deliveries to agents that do not connect, when their age ends. No worker owns the lane of such an endpoint, so that nobody would
 * find them: docs/decisions/0023-relay.md.
 */
import { givenUpAt, heldUntil } from "../core/absent-agent.ts"
import type { Clock, Timer } from "../core/clock.ts"
import { isLive } from "../core/operate.ts"
import type { Policy } from "../core/policy.ts"
import { type LiveDelivery, settle, unchangedOf } from "../core/settle.ts"
import { amended, type EventSink } from "../observe/event-stream.ts"
import type { Logger } from "../observe/log.ts"
import type { Delivery, Endpoint, Store } from "../store/store.ts"
import type { Transport } from "../transport/transport.ts"
import { policyOf } from "./target.ts"

export interface RelayExpiryParts {
  readonly store: Pick<Store, "listEndpoints" | "listDeliveries" | "amendIfUnchanged">
  readonly clock: Clock
  readonly events: EventSink
  readonly logger: Logger
  readonly transport: Pick<Transport, "reachOf">
  readonly defaultPolicy: Policy
  /** In all processes. */
  isAgentAbsent(endpoint: Endpoint): Promise<boolean>
  /** Since when neither the store nor our own network was down. */
  upSince(): number
}

const EXPIRY_MS = 60_000
const PAGE = 250

export class RelayExpiry {
  readonly #parts: RelayExpiryParts
  #timer: Timer | null = null
  #isStopped = true

  constructor(parts: RelayExpiryParts) {
    this.#parts = parts
  }

  start(): void {
    this.#isStopped = false
    this.#again()
  }

  #again(): void {
    this.#timer = this.#parts.clock.setTimer(EXPIRY_MS, () => {
      void this.runOnce().finally(() => {
        if (!this.#isStopped) this.#again()
      })
    })
  }

  stop(): void {
    this.#isStopped = true
    this.#timer?.cancel()
  }

  async runOnce(): Promise<void> {
    const { store, logger } = this.#parts
    try {
      for (let from: string | null = null; !this.#isStopped; ) {
        const page = { limit: PAGE, order: "ascending", from, back: false } as const
        const endpoints = await store.listEndpoints({ transport: "relay" }, page)
        for (const endpoint of endpoints) await this.#expire(endpoint)
        if (endpoints.length < PAGE) return
        from = endpoints.at(-1)!.id
      }
    } catch (error) {
      if (!this.#isStopped)
        logger.warn({ err: error }, "Deliveries to absent agents could not be expired; trying again")
    }
  }

  async #expire(endpoint: Endpoint): Promise<void> {
    const { store, clock, transport, defaultPolicy } = this.#parts
    const policy = policyOf(endpoint, defaultPolicy)
    const now = clock.now()
    const held = heldUntil(endpoint)
    const isHeld = endpoint.disabled || endpoint.paused || held > now
    // The lane of a connected agent expires its deliveries when their turn comes.
    const isReachable = transport.reachOf(endpoint)?.() !== "absent"
    if (policy.maxAge === null || isHeld || isReachable) return
    const heldSince = Math.max(held, this.#parts.upSince())
    // In the order of their acceptance: most endpoints have no old delivery, and cost one row.
    for (let from: number | null = null, limit = 1; !this.#isStopped; limit = PAGE) {
      const page = { limit, order: "ascending", from, back: false } as const
      const deliveries = await store.listDeliveries({ endpointId: endpoint.id, live: true }, page)
      const ended = deliveries.filter((one) => one.ageFrom === null || isExpired(one, policy, now, heldSince))
      if (ended.length > 0 && !(await this.#parts.isAgentAbsent(endpoint))) return
      await this.#amend(endpoint, policy, ended)
      const last = deliveries.at(-1)
      if (deliveries.length < limit || last!.receivedAt > now - policy.maxAge * 1000) return
      from = last!.seq
    }
  }

  /** Gives the deliveries up. The age of one that an operator's SQL revived begins now: no attempt began it. */
  async #amend({ orgId }: Endpoint, policy: Policy, deliveries: readonly Delivery[]): Promise<void> {
    const { store, clock, events } = this.#parts
    const now = clock.now()
    const changes = deliveries.map((delivery) =>
      delivery.ageFrom === null
        ? unchangedOf(delivery, now)
        : settle(delivery as Delivery & LiveDelivery, { kind: "overdue" }, policy, now, () => 0),
    )
    const applied = await store.amendIfUnchanged(
      deliveries.map(({ seq, status, attemptCount }, i) => ({
        seq,
        expectedStatus: status,
        expectedAttemptCount: attemptCount,
        change: changes[i]!,
      })),
    )
    for (const [i, delivery] of deliveries.entries())
      if (applied[i] && delivery.ageFrom !== null) events.emit(amended(delivery, orgId, changes[i]!, now))
  }
}

function isExpired(delivery: Delivery, policy: Policy, now: number, heldSince: number): boolean {
  const endsAt = isLive(delivery) ? givenUpAt(delivery.ageFrom, policy, heldSince) : null
  return endsAt !== null && now >= endsAt
}

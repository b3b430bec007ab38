/**
 * Gives up deliveries to agents that do not connect, when their age ends. No worker owns the lane of such an endpoint, so that nobody would
 * find them: docs/decisions/0023-relay.md.
 */
import { givenUpAt, heldUntil } from "../core/absent-agent.ts"
import type { Clock, Timer } from "../core/clock.ts"
import { isLive } from "../core/operate.ts"
import type { Policy } from "../core/policy.ts"
import { type LiveDelivery, settle } from "../core/settle.ts"
import { amended, type EventSink } from "../observe/event-stream.ts"
import type { Logger } from "../observe/log.ts"
import type { Delivery, Endpoint, Store } from "../store/store.ts"
import type { Transport } from "../transport/transport.ts"
import { policyOf } from "./target.ts"

export interface RelayExpiryParts {
  readonly store: Pick<Store, "listEndpoints" | "listDeliveries" | "listLanes" | "amendIfUnchanged">
  readonly clock: Clock
  readonly events: EventSink
  readonly logger: Logger
  readonly transport: Pick<Transport, "reachOf">
  readonly defaultPolicy: Policy
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
    for (let from: number | null = null; !this.#isStopped; ) {
      const page = { limit: PAGE, order: "ascending", from, back: false } as const
      const deliveries = await store.listDeliveries({ endpointId: endpoint.id, live: true }, page)
      await this.#giveUp(
        endpoint,
        policy,
        deliveries.filter((one) => isExpired(one, policy, now, heldSince)),
      )
      const last = deliveries.at(-1)
      // In the order of their acceptance: the others are younger.
      if (deliveries.length < PAGE || last!.receivedAt > now - policy.maxAge * 1000) return
      from = last!.seq
    }
  }

  /** The agent is connected to another process, which has deliveries in hand. */
  async #isBusy(endpointId: string): Promise<boolean> {
    const page = { limit: 1, order: "ascending", from: null, back: false } as const
    const [lane] = await this.#parts.store.listLanes({ endpointId }, page)
    return lane !== undefined && lane.sending > 0
  }

  async #giveUp({ id, orgId }: Endpoint, policy: Policy, expired: readonly Delivery[]): Promise<void> {
    const { store, clock, events } = this.#parts
    if (expired.length === 0 || (await this.#isBusy(id))) return
    const now = clock.now()
    const changes = expired.map((delivery) =>
      settle(delivery as Delivery & LiveDelivery, { kind: "overdue" }, policy, now, () => 0),
    )
    const applied = await store.amendIfUnchanged(
      expired.map(({ seq, status, attemptCount }, i) => ({
        seq,
        expectedStatus: status,
        expectedAttemptCount: attemptCount,
        change: changes[i]!,
      })),
    )
    for (const [i, delivery] of expired.entries())
      if (applied[i]) events.emit(amended(delivery, orgId, changes[i]!, now))
  }
}

function isExpired(delivery: Delivery, policy: Policy, now: number, heldSince: number): boolean {
  const endsAt = isLive(delivery) ? givenUpAt(delivery.ageFrom, policy, heldSince) : null
  return endsAt !== null && now >= endsAt
}

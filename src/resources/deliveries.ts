/** Deliveries, and the changes that an operator makes to one of them. */
import { type Clock, momentOf, steadyDueOf } from "../core/clock.ts"
import { invalid, PosthornError } from "../core/errors.ts"
import {
  ifGiven,
  refuseUnknown,
  requireBoolean,
  requireDelayMs,
  requireObject,
  requireTime,
} from "../core/input.ts"
import { cancel, isLive, reschedule, revive } from "../core/operate.ts"
import { ageEndsAt, type Change } from "../core/settle.ts"
import type { Wait, WaitReason } from "../core/wait.ts"
import { amended } from "../observe/event-stream.ts"
import type { DeliveryFilter, Delivery as Row } from "../store/store.ts"
import { DELIVERY_FIELDS, type DeliveryQuery, parseQuery, toFilter } from "./delivery-query.ts"
import type { SearchEnd } from "./newest.ts"
import { type BoundedInput, bySeq, type Listing, listing, MOST_SEARCHED, type PageInput } from "./paging.ts"
import { date, policyFor, type ResourceContext, requireFound } from "./resource-context.ts"
import { countNewestWaiting, countWaiting, sendNow, type WaitingQuery } from "./send-now.ts"
import type { Task } from "./tasks.ts"
import { withWaits } from "./wait-reasons.ts"

export type { DeliveryQuery } from "./delivery-query.ts"

type Times = "nextRetryAt" | "lastAttemptedAt" | "receivedAt" | "deliveredAt" | "discardedAt"

export interface Delivery
  extends Omit<Row, "seq" | "ageFrom" | "stalls" | "manual" | "deferred" | "dated" | Times> {
  /** The earliest start of the next attempt. Null for a finished delivery, during an attempt, and while the endpoint is paused or disabled. With the reason `agent`: when the delivery is given up. */
  readonly nextRetryAt: Date | null
  /** Null for a finished delivery. */
  readonly waitReason: WaitReason | null
  readonly lastAttemptedAt: Date | null
  readonly receivedAt: Date
  readonly deliveredAt: Date | null
  readonly discardedAt: Date | null
}

/** When the next attempt starts: at a time, or after a delay from now. */
export interface RescheduleInput {
  at?: Date | number
  delaySeconds?: number
}

const MOST_TRIES = 10

export class Deliveries {
  readonly #context: ResourceContext

  constructor(context: ResourceContext) {
    this.#context = context
  }

  /** Rejects with `not_found`. */
  async get(id: string): Promise<Delivery> {
    return show((await withWaits(this.#context, [await readDelivery(this.#context, id)]))[0]!)
  }

  /** Newest first. */
  list(query: DeliveryQuery & BoundedInput & PageInput = {}): Listing<Delivery> {
    return listDeliveries(this.#context, query, (asked) => toFilter(this.#context, asked))
  }

  async count(query: DeliveryQuery = {}): Promise<number> {
    return this.#context.store.countDeliveries(await parseQuery(this.#context, query))
  }

  /** Sends a finished delivery again: attempt 0, due now, its age starts anew. A delivery that waits becomes due now. */
  async retry(id: string): Promise<Delivery> {
    const { store, wake } = this.#context
    const { appId, endpointId, messageId } = await readDelivery(this.#context, id)
    if ((await store.getEndpoint(appId, endpointId)) === null)
      throw new PosthornError("conflict", `delivery "${id}" cannot be sent again: its endpoint was deleted`)
    const [message] = await store.getMessages([messageId], false)
    if (message?.expunged)
      throw new PosthornError("conflict", `delivery "${id}" cannot be sent again: its payload was expunged`)
    const { now } = await this.#amend(id, revive)
    wake([{ endpointId, appId, dueAt: now }])
    return this.get(id)
  }

  /** Sets the next attempt of a delivery that waits. No attempt is counted, and a request in flight goes on. */
  async reschedule(id: string, input: RescheduleInput): Promise<Delivery> {
    const { clock, recall, wake } = this.#context
    const dueAt = dueAtOf(input, clock)
    const before = await readDelivery(this.#context, id)
    const { appId, endpointId } = before
    const policy = await policyFor(this.#context, before)
    await this.#amend(id, (row, now) => {
      requireLive(row)
      // Without its date, the delivery's age is on the steady clock, as when it joins its lane.
      const stepMs = row.dated ? now - clock.wallNow() : 0
      const ageFrom = row.ageFrom === null ? null : row.ageFrom + stepMs
      const endsAt = ageEndsAt(ageFrom, policy)
      if (endsAt !== null && dueAt >= endsAt)
        throw invalid(
          input.at === undefined ? "delaySeconds" : "at",
          `must lead to a time before ${new Date(endsAt).toISOString()}, when the delivery expires`,
        )
      return reschedule({ ...row, ageFrom }, dueAt, now)
    })
    recall({ endpointId })
    wake([{ endpointId, appId, dueAt }])
    return this.get(id)
  }

  /** The number of deliveries that `sendNow` would take. */
  countWaiting(query: WaitingQuery = {}): Promise<number> {
    return countWaiting(this.#context, query)
  }

  /** As `countWaiting`, of the newest 10 000 deliveries that an index finds. All waiting deliveries are counted if they are fewer. */
  countNewestWaiting(query: WaitingQuery = {}): Promise<SearchEnd & { readonly count: number }> {
    return countNewestWaiting(this.#context, query)
  }

  /**
   * For a receiver that works again: makes waiting deliveries due now and ends its Retry-After. No attempt is counted, ordered endpoints keep
   * their order, and first attempts with a `deliverAt` keep it. Durable: watch it with `tasks.get`, stop it with `tasks.cancel`.
   */
  sendNow(query: WaitingQuery): Promise<Task> {
    return sendNow(this.#context, query)
  }

  /** Ends a delivery that waits as dead, with the reason `cancelled`. */
  async cancel(id: string): Promise<Delivery> {
    const policy = await policyFor(this.#context, await readDelivery(this.#context, id))
    const { delivery, change, now } = await this.#amend(id, (row, now) => {
      requireLive(row)
      return cancel(row, policy, now)
    })
    this.#context.recall({ endpointId: delivery.endpointId })
    this.#context.events.emit(amended(delivery, this.#context.orgId, change, now))
    return this.get(id)
  }

  /** Decides again when an attempt finishes in between. */
  async #amend(
    id: string,
    decide: (row: Row, now: number) => Change,
  ): Promise<{ delivery: Row; change: Change; now: number }> {
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const delivery = await readDelivery(this.#context, id)
      const now = this.#context.clock.now()
      const change = decide(delivery, now)
      if (await amendIfUnchanged(this.#context, delivery, change)) return { delivery, change, now }
    }
    throw new PosthornError("conflict", `delivery "${id}" keeps changing; try again`)
  }
}

/** False: the delivery has changed since it was read. */
export async function amendIfUnchanged(
  { store }: ResourceContext,
  { seq, status, attemptCount }: Row,
  change: Change | { readonly discardedAt: number },
): Promise<boolean> {
  const amendment = { seq, expectedStatus: status, expectedAttemptCount: attemptCount, change }
  return (await store.amendIfUnchanged([amendment]))[0]!
}

function requireLive(row: Row): void {
  if (!isLive(row)) throw new PosthornError("conflict", `delivery "${row.id}" is ${row.status} already`)
}

function dueAtOf(input: RescheduleInput, clock: Clock): number {
  requireObject(input, "options")
  refuseUnknown(input, ["at", "delaySeconds"], "")
  const { at, delaySeconds } = input
  if ((at === undefined) === (delaySeconds === undefined))
    throw invalid("at", "or delaySeconds must be given, and not both")
  if (at !== undefined) return steadyDueOf(requireTime(at, "at"), momentOf(clock))
  return clock.now() + requireDelayMs(delaySeconds, "delaySeconds")
}

export function listDeliveries<Q extends PageInput & BoundedInput>(
  context: ResourceContext,
  query: Q,
  filterOf: (query: Q) => Promise<DeliveryFilter>,
): Listing<Delivery> {
  return listing(query, {
    fields: [...DELIVERY_FIELDS, "bounded"],
    by: bySeq,
    read: async (asked) => {
      const filter = await filterOf(asked)
      const { store } = context
      if (!ifGiven(asked.bounded, "bounded", requireBoolean))
        return async (page) => withWaits(context, await store.listDeliveries(filter, page))
      return async (page) => {
        const bound = await store.boundDeliveries(filter, page, MOST_SEARCHED)
        return {
          rows: await withWaits(context, await store.listDeliveries(bound.filter, page)),
          end: bound.end,
        }
      }
    },
    show,
  })
}

export function readDelivery({ store, orgId }: ResourceContext, id: string): Promise<Row> {
  return requireFound("delivery", id, (key) => store.getDelivery(orgId, key))
}

function show({
  seq: _seq,
  ageFrom: _ageFrom,
  stalls: _stalls,
  manual: _manual,
  deferred: _deferred,
  dated: _dated,
  wait,
  ...row
}: Row & { readonly wait: Wait | null }): Delivery {
  return {
    ...row,
    nextRetryAt: date(wait?.at ?? null),
    waitReason: wait?.reason ?? null,
    lastAttemptedAt: date(row.lastAttemptedAt),
    receivedAt: date(row.receivedAt),
    deliveredAt: date(row.deliveredAt),
    discardedAt: date(row.discardedAt),
  }
}

/** "The receiver works again": sends waiting deliveries now. */
import { reset } from "../core/breaker.ts"
import { momentOf } from "../core/clock.ts"
import { invalid, PosthornError } from "../core/errors.ts"
import { requireObject } from "../core/input.ts"
import type { LiveStatus } from "../core/settle.ts"
import { breakerEvent } from "../observe/endpoint-events.ts"
import type { DeliveryFilter, Endpoint } from "../store/store.ts"
import { type DeliveryQuery, parseQuery } from "./delivery-query.ts"
import { ofNewest, type SearchEnd } from "./newest.ts"
import type { ResourceContext } from "./resource-context.ts"
import { newTask, startTask, type Task } from "./tasks.ts"

export interface WaitingQuery extends Omit<DeliveryQuery, "status" | "deadReason" | "calledOff"> {
  /** `pending`: waits for the first attempt; `failed`: waits for another one. */
  status?: LiveStatus
}

const PAGE = 100

export async function countWaiting(context: ResourceContext, query: WaitingQuery): Promise<number> {
  return context.store.countDeliveries(await parseWaiting(context, query))
}

export async function countNewestWaiting(
  context: ResourceContext,
  query: WaitingQuery,
): Promise<SearchEnd & { readonly count: number }> {
  const { store } = context
  const filter = await parseWaiting(context, query)
  const { found, searchedTo } = await ofNewest(store, filter, (bound) => store.countDeliveries(bound))
  return { count: found, searchedTo }
}

/** A task, so that a million deliveries delay no other work. A hold is ended only at its start: the receiver may ask for another. */
export async function sendNow(context: ResourceContext, query: WaitingQuery): Promise<Task> {
  const filter = await parseWaiting(context, query)
  const task = await newTask(context, "send-now", "delivery.send-now", filter)
  await endHolds(context, filter)
  return startTask(context, task)
}

/** Leaves out first attempts with a `deliverAt`, which no outage delays, and paused and disabled endpoints, which would not send. */
async function parseWaiting(context: ResourceContext, query: WaitingQuery): Promise<DeliveryFilter> {
  requireObject(query, "query")
  for (const field of ["deadReason", "calledOff"])
    if (field in query) throw invalid(field, "is for dead letters, and these wait")
  if (query.status !== undefined && query.status !== "pending" && query.status !== "failed")
    throw invalid("status", "must be one of pending, failed")
  const { now, wall } = momentOf(context.clock)
  const filter = { ...(await parseQuery(context, query)), live: true, startableBy: now, datesBy: wall }
  if (filter.endpointId !== undefined) await requireSending(context, filter)
  return { ...filter, endpointSends: true }
}

/** Without this error, a paused or disabled endpoint would have an empty task and no reason for it. */
async function requireSending(context: ResourceContext, filter: DeliveryFilter): Promise<void> {
  const [endpoint] = await context.store.listEndpoints(lanesOf(filter), firstPage)
  const state = endpoint?.disabled ? "disabled; enable" : endpoint?.paused ? "paused; resume" : null
  if (state !== null)
    throw new PosthornError("conflict", `endpoint "${endpoint!.id}" is ${state} it before sending`)
}

/** Ends the Retry-After, and closes the circuit breakers, of the lanes of these deliveries. */
async function endHolds(
  { store, clock, events, endpointChanged }: ResourceContext,
  filter: DeliveryFilter,
): Promise<void> {
  const now = clock.now()
  for (let from: string | null = null; ; ) {
    const held: Endpoint[] = await store.listEndpoints(
      { ...lanesOf(filter), heldAfter: now },
      { ...firstPage, from },
    )
    for (const endpoint of held) {
      const { id, appId, protection } = endpoint
      if ((await store.countDeliveries({ ...filter, endpointId: id })) === 0) continue
      await store.updateEndpoint(id, { holdUntil: null, protection: reset(protection) }, now)
      endpointChanged(id, appId)
      if (protection.phase === "open") events.emit(breakerEvent("closed", endpoint, protection, now))
    }
    if (held.length < PAGE) return
    from = held.at(-1)!.id
  }
}

const firstPage = { limit: PAGE, order: "ascending", from: null, back: false } as const

function lanesOf({ orgId, appId, endpointId }: DeliveryFilter) {
  return { orgId, appId, endpointId }
}

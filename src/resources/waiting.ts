/** "The receiver is back": what waits for it is sent now. */
import { momentOf } from "../core/clock.ts"
import { invalid, PosthornError } from "../core/errors.ts"
import { requireObject } from "../core/input.ts"
import type { LiveStatus } from "../core/settle.ts"
import type { DeliveryFilter, Endpoint } from "../store/store.ts"
import { type DeliveryQuery, parseQuery } from "./deliveries.ts"
import { newTask, type ResourceContext } from "./resource-context.ts"
import { startTask, type Task } from "./tasks.ts"

/** Which of the deliveries that wait. */
export interface WaitingQuery extends Omit<DeliveryQuery, "status" | "deadReason" | "calledOff"> {
  /** Only those that wait for their first attempt, or only those that wait for another one. */
  status?: LiveStatus
}

const PAGE = 100

export async function countWaiting(context: ResourceContext, query: WaitingQuery): Promise<number> {
  return context.store.countDeliveries(await parseWaiting(context, query))
}

/** As a task, so that a million deliveries block nobody. Lanes are opened at once, and only once: a receiver may ask for patience again. */
export async function sendNow(context: ResourceContext, query: WaitingQuery): Promise<Task> {
  const filter = await parseWaiting(context, query)
  const task = await newTask(context, "send-now", "delivery.send-now", filter)
  await openLanes(context, filter)
  return startTask(context, task)
}

/**
 * A first attempt that somebody set for a later time is not what a receiver's outage holds up: it keeps its time. Paused and disabled
 * endpoints keep their deliveries: made due, these would be counted as sent and would not be.
 */
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

/** Of an endpoint that sends nothing it would look as if nothing had happened. */
async function requireSending(context: ResourceContext, filter: DeliveryFilter): Promise<void> {
  const [endpoint] = await context.store.listEndpoints(lanesOf(filter), firstPage)
  const state = endpoint?.disabled ? "disabled; enable" : endpoint?.paused ? "paused; resume" : null
  if (state !== null)
    throw new PosthornError("conflict", `endpoint "${endpoint!.id}" is ${state} it before sending`)
}

/**
 * Ends what keeps the lanes of these deliveries from sending: the hold of a Retry-After. Whatever else closes a lane because of what its
 * receiver answered (a circuit breaker, a ramp) is ended here too.
 */
async function openLanes(
  { store, clock, endpointChanged }: ResourceContext,
  filter: DeliveryFilter,
): Promise<void> {
  const now = clock.now()
  for (let from: string | null = null; ; ) {
    const held: Endpoint[] = await store.listEndpoints(
      { ...lanesOf(filter), heldAfter: now },
      { ...firstPage, from },
    )
    for (const { id, appId } of held) {
      if ((await store.countDeliveries({ ...filter, endpointId: id })) === 0) continue
      await store.updateEndpoint(id, { holdUntil: null }, now)
      endpointChanged(id, appId)
    }
    if (held.length < PAGE) return
    from = held.at(-1)!.id
  }
}

const firstPage = { limit: PAGE, order: "ascending", from: null, back: false } as const

function lanesOf({ orgId, appId, endpointId }: DeliveryFilter) {
  return { orgId, appId, endpointId }
}

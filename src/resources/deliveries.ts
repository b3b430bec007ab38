/** Deliveries and their attempts, and what an operator does with one of them. */
import { type Clock, momentOf, steadyDueOf } from "../core/clock.ts"
import { invalid, notFound, PosthornError } from "../core/errors.ts"
import { isId } from "../core/ids.ts"
import { refuseUnknown, requireBoolean, requireDelayMs, requireObject, requireTime } from "../core/input.ts"
import { cancel, isLive, reschedule, revive } from "../core/operate.ts"
import { DEAD_REASONS, type DeadReason } from "../core/policy.ts"
import { ageEndsAt, type Change, type DeliveryStatus } from "../core/settle.ts"
import type { Wait, WaitReason } from "../core/wait.ts"
import { policyOf } from "../engine/target.ts"
import { amended } from "../observe/event-stream.ts"
import type { DeliveryFilter, Delivery as Row } from "../store/store.ts"
import {
  type List,
  type Listing,
  listing,
  listPage,
  PAGE_FIELDS,
  type PageInput,
  pageBySeq,
} from "./paging.ts"
import {
  CONTENT_FIELDS,
  type ContentQuery,
  oneOf,
  optionalText,
  parseContent,
  RESPONSE_CLASSES,
  type ResponseClass,
} from "./query.ts"
import { date, type ResourceContext, requireApplication, requireEndpoint } from "./resource-context.ts"
import type { Task } from "./tasks.ts"
import { countWaiting, sendNow, type WaitingQuery } from "./waiting.ts"
import { withWaits } from "./waits.ts"

type Times = "nextRetryAt" | "lastAttemptedAt" | "receivedAt" | "deliveredAt" | "discardedAt"

export interface Delivery
  extends Omit<Row, "seq" | "ageFrom" | "stalls" | "manual" | "deferred" | "dated" | Times> {
  /** When the next attempt can start at the earliest. Null when none follows, when it is in flight, and while the endpoint is paused or disabled. */
  readonly nextRetryAt: Date | null
  /** Why it waits; null when it is finished. */
  readonly waitReason: WaitReason | null
  readonly lastAttemptedAt: Date | null
  readonly receivedAt: Date
  readonly deliveredAt: Date | null
  readonly discardedAt: Date | null
}

/** Which deliveries: those that fit everything that is given. Times are those at which the message was received. */
export interface DeliveryQuery extends ContentQuery {
  /** An application, by id or uid. */
  app?: string
  /** An endpoint, by id; or by uid together with `app`. */
  endpoint?: string
  /** A message, by id; or by event id together with `app`. */
  message?: string
  status?: DeliveryStatus
  /** True: only those that are not finished, `pending` and `failed`. */
  live?: boolean
  deadReason?: DeadReason
  /** Of the dead: those that somebody called off (`cancelled`, `expunged`), or those that were given up. */
  calledOff?: boolean
  /** Of the last answer: 0 for none, 100 to 500. */
  responseClass?: ResponseClass
}

/** When a delivery is tried next: at a time, or after a delay from now. */
export interface RescheduleInput {
  at?: Date | number
  delaySeconds?: number
}

const FIELDS = [
  "app",
  "endpoint",
  "message",
  "status",
  "live",
  "deadReason",
  "calledOff",
  "responseClass",
  ...CONTENT_FIELDS,
] as const
const STATUSES: readonly DeliveryStatus[] = ["pending", "failed", "delivered", "dead"]
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
  list(query: DeliveryQuery & PageInput = {}): Listing<Delivery> {
    return listing(query, (asked) => this.#page(asked))
  }

  async #page(query: DeliveryQuery & PageInput): Promise<List<Delivery>> {
    return listDeliveries(this.#context, query, (filter) => parseQuery(this.#context, filter))
  }

  async count(query: DeliveryQuery = {}): Promise<number> {
    return this.#context.store.countDeliveries(await parseQuery(this.#context, query))
  }

  /** Sends a finished delivery again, dead or delivered: attempt 0, due now, its age starts anew. One that waits becomes due now. */
  async retry(id: string): Promise<Delivery> {
    const { appId, endpointId, messageId } = await readDelivery(this.#context, id)
    if ((await this.#context.store.getEndpoint(appId, endpointId)) === null) {
      throw new PosthornError("conflict", `delivery "${id}" cannot be sent again: its endpoint was deleted`)
    }
    const message = await this.#context.store.getMessages([messageId], false)
    if (message[0]?.expunged)
      throw new PosthornError("conflict", `delivery "${id}" cannot be sent again: its payload was expunged`)
    const { delivery, now } = await this.#amend(id, (row, now) => revive(row, now))
    this.#context.wake([{ endpointId: delivery.endpointId, appId: delivery.appId, dueAt: now }])
    return this.get(id)
  }

  /** Sets when a delivery that waits is tried next. No attempt is counted; one that is under way goes its way. */
  async reschedule(id: string, input: RescheduleInput): Promise<Delivery> {
    const dueAt = dueAtOf(input, this.#context.clock)
    const { appId, endpointId } = await readDelivery(this.#context, id)
    const endpoint = await this.#context.store.getEndpoint(appId, endpointId)
    const policy =
      endpoint === null ? this.#context.defaultPolicy : policyOf(endpoint, this.#context.defaultPolicy)
    await this.#amend(id, (row, now) => {
      requireLive(row)
      // It waits for no date any more: its age is converted to the steady clock, as when it joins its lane.
      const stepMs = row.dated ? now - this.#context.clock.wallNow() : 0
      const ageFrom = row.ageFrom === null ? null : row.ageFrom + stepMs
      const endsAt = ageEndsAt(ageFrom, policy)
      if (endsAt !== null && dueAt >= endsAt)
        throw invalid(
          input.at === undefined ? "delaySeconds" : "at",
          `must lead to a time before ${new Date(endsAt).toISOString()}, when the delivery expires`,
        )
      return reschedule({ ...row, ageFrom }, dueAt, now)
    })
    this.#context.recall({ endpointId })
    this.#context.wake([{ endpointId, appId, dueAt }])
    return this.get(id)
  }

  /** How many `sendNow` would take: the preview. */
  countWaiting(query: WaitingQuery = {}): Promise<number> {
    return countWaiting(this.#context, query)
  }

  /**
   * The receiver is back: makes what waits due now, and ends a Retry-After that holds it. No attempt is counted, and ordered endpoints keep
   * their order. First attempts that were set for a later time keep it. Durable: watch it with `tasks.get`, stop it with `tasks.cancel`.
   */
  sendNow(query: WaitingQuery): Promise<Task> {
    return sendNow(this.#context, query)
  }

  /** Calls off a delivery that waits: dead, with the reason `cancelled`. */
  async cancel(id: string): Promise<Delivery> {
    const { appId, endpointId } = await readDelivery(this.#context, id)
    const endpoint = await this.#context.store.getEndpoint(appId, endpointId)
    const policy =
      endpoint === null ? this.#context.defaultPolicy : policyOf(endpoint, this.#context.defaultPolicy)
    const { delivery, change, now } = await this.#amend(id, (row, now) => {
      requireLive(row)
      return cancel(row, policy, now)
    })
    this.#context.recall({ endpointId: delivery.endpointId })
    this.#context.events.emit(amended(delivery, change, now))
    return this.get(id)
  }

  /** An attempt may finish in between: then the change is computed anew from what is there. */
  async #amend(
    id: string,
    decide: (row: Row, now: number) => Change,
  ): Promise<{ delivery: Row; change: Change; now: number }> {
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const delivery = await readDelivery(this.#context, id)
      const now = this.#context.clock.now()
      const change = decide(delivery, now)
      const { seq, status, attemptCount } = delivery
      const [applied] = await this.#context.store.amend([
        { seq, expectedStatus: status, expectedAttemptCount: attemptCount, change },
      ])
      if (applied) return { delivery, change, now }
    }
    throw new PosthornError("conflict", `delivery "${id}" keeps changing; try again`)
  }
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
  // A date is one of the wall clock.
  if (at !== undefined) return steadyDueOf(requireTime(at, "at"), momentOf(clock))
  return clock.now() + requireDelayMs(delaySeconds, "delaySeconds")
}

export async function listDeliveries<Q extends PageInput>(
  context: ResourceContext,
  query: Q,
  parse: (filter: Omit<Q, keyof PageInput>) => Promise<DeliveryFilter>,
): Promise<List<Delivery>> {
  requireObject(query, "query")
  const filter = Object.fromEntries(
    Object.entries(query).filter(([field]) => !(PAGE_FIELDS as readonly string[]).includes(field)),
  ) as Omit<Q, keyof PageInput>
  const page = pageBySeq(query)
  const parsed = await parse(filter)
  return listPage(
    page,
    async (read) => withWaits(context, await context.store.listDeliveries(parsed, read)),
    ({ seq }) => seq,
    show,
  )
}

export async function readDelivery(context: ResourceContext, id: string): Promise<Row> {
  const row = typeof id === "string" ? await context.store.getDelivery(context.orgId, id) : null
  if (row === null) throw notFound("delivery", String(id))
  return row
}

export async function parseQuery(context: ResourceContext, query: DeliveryQuery): Promise<DeliveryFilter> {
  requireObject(query, "query")
  refuseUnknown(query, FIELDS, "")
  for (const field of ["app", "endpoint", "message"] as const) optionalText(query[field], field)
  const { app, endpoint, message } = query
  if (app === undefined && endpoint !== undefined && !isId("ep", endpoint))
    throw invalid("endpoint", "must be an endpoint's id: a uid names one only together with its app")
  if (app === undefined && message !== undefined && !isId("msg", message))
    throw invalid("message", "must be a message's id: an event id names one only together with its app")
  const appId = app === undefined ? undefined : (await requireApplication(context, app)).id
  return {
    ...parseContent(query),
    // An application belongs to its tenant already.
    orgId: app === undefined ? context.orgId : undefined,
    appId,
    endpointId:
      app === undefined || endpoint === undefined
        ? endpoint
        : (await requireEndpoint(context, app, endpoint)).id,
    messageId:
      appId === undefined || message === undefined ? message : await messageIdOf(context, appId, message),
    status: oneOf(query.status, "status", STATUSES),
    live: query.live === undefined ? undefined : requireBoolean(query.live, "live"),
    calledOff: query.calledOff === undefined ? undefined : requireBoolean(query.calledOff, "calledOff"),
    deadReason: oneOf(query.deadReason, "deadReason", DEAD_REASONS),
    responseClass: oneOf(query.responseClass, "responseClass", RESPONSE_CLASSES),
  }
}

async function messageIdOf({ store }: ResourceContext, appId: string, key: string): Promise<string> {
  const message = await store.getMessage(appId, key)
  if (message === null) throw notFound("message", key)
  return message.id
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

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
import type { DeliveryFilter, Delivery as Row } from "../store/store.ts"
import { type Core, date, requireApplication, requireEndpoint } from "./core.ts"
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
  readonly #core: Core

  constructor(core: Core) {
    this.#core = core
  }

  /** Rejects with `not_found`. */
  async get(id: string): Promise<Delivery> {
    return show((await withWaits(this.#core, [await readDelivery(this.#core, id)]))[0]!)
  }

  /** Newest first. */
  list(query: DeliveryQuery & PageInput = {}): Listing<Delivery> {
    return listing(query, (asked) => this.#page(asked))
  }

  async #page(query: DeliveryQuery & PageInput): Promise<List<Delivery>> {
    return listDeliveries(this.#core, query, (filter) => parseQuery(this.#core, filter))
  }

  async count(query: DeliveryQuery = {}): Promise<number> {
    return this.#core.store.countDeliveries(await parseQuery(this.#core, query))
  }

  /** Sends a finished delivery again, dead or delivered: attempt 0, due now, its age starts anew. One that waits becomes due now. */
  async retry(id: string): Promise<Delivery> {
    const { appId, endpointId, messageId } = await readDelivery(this.#core, id)
    if ((await this.#core.store.getEndpoint(appId, endpointId)) === null) {
      throw new PosthornError("conflict", `delivery "${id}" cannot be sent again: its endpoint was deleted`)
    }
    const message = await this.#core.store.getMessages([messageId], false)
    if (message[0]?.expunged)
      throw new PosthornError("conflict", `delivery "${id}" cannot be sent again: its payload was expunged`)
    const { delivery, now } = await this.#amend(id, (row, now) => revive(row, now))
    this.#core.wake([{ endpointId: delivery.endpointId, appId: delivery.appId, dueAt: now }])
    return this.get(id)
  }

  /** Sets when a delivery that waits is tried next. No attempt is counted; one that is under way goes its way. */
  async reschedule(id: string, input: RescheduleInput): Promise<Delivery> {
    const dueAt = dueAtOf(input, this.#core.clock)
    const { appId, endpointId } = await readDelivery(this.#core, id)
    const endpoint = await this.#core.store.getEndpoint(appId, endpointId)
    const policy = endpoint === null ? this.#core.defaultPolicy : policyOf(endpoint, this.#core.defaultPolicy)
    await this.#amend(id, (row, now) => {
      requireLive(row)
      // It waits for no date any more: its age is converted to the steady clock, as when it joins its lane.
      const stepMs = row.dated ? now - this.#core.clock.wallNow() : 0
      const ageFrom = row.ageFrom === null ? null : row.ageFrom + stepMs
      const endsAt = ageEndsAt(ageFrom, policy)
      if (endsAt !== null && dueAt >= endsAt)
        throw invalid(
          input.at === undefined ? "delaySeconds" : "at",
          `must lead to a time before ${new Date(endsAt).toISOString()}, when the delivery expires`,
        )
      return reschedule({ ...row, ageFrom }, dueAt, now)
    })
    this.#core.recall({ endpointId })
    this.#core.wake([{ endpointId, appId, dueAt }])
    return this.get(id)
  }

  /** How many `sendNow` would take: the preview. */
  countWaiting(query: WaitingQuery = {}): Promise<number> {
    return countWaiting(this.#core, query)
  }

  /**
   * The receiver is back: makes what waits due now, and ends a Retry-After that holds it. No attempt is counted, and ordered endpoints keep
   * their order. First attempts that were set for a later time keep it. Durable: watch it with `tasks.get`, stop it with `tasks.cancel`.
   */
  sendNow(query: WaitingQuery): Promise<Task> {
    return sendNow(this.#core, query)
  }

  /** Calls off a delivery that waits: dead, with the reason `cancelled`. */
  async cancel(id: string): Promise<Delivery> {
    const { appId, endpointId } = await readDelivery(this.#core, id)
    const endpoint = await this.#core.store.getEndpoint(appId, endpointId)
    const policy = endpoint === null ? this.#core.defaultPolicy : policyOf(endpoint, this.#core.defaultPolicy)
    const { delivery, change, now } = await this.#amend(id, (row, now) => {
      requireLive(row)
      return cancel(row, policy, now)
    })
    this.#core.recall({ endpointId: delivery.endpointId })
    this.#core.reporter.amended(delivery, change, now)
    return this.get(id)
  }

  /** An attempt may finish in between: then the change is computed anew from what is there. */
  async #amend(
    id: string,
    decide: (row: Row, now: number) => Change,
  ): Promise<{ delivery: Row; change: Change; now: number }> {
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const delivery = await readDelivery(this.#core, id)
      const now = this.#core.clock.now()
      const change = decide(delivery, now)
      const { seq, status, attemptCount } = delivery
      const [applied] = await this.#core.store.amend([
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
  core: Core,
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
    async (read) => withWaits(core, await core.store.listDeliveries(parsed, read)),
    ({ seq }) => seq,
    show,
  )
}

export async function readDelivery(core: Core, id: string): Promise<Row> {
  const row = typeof id === "string" ? await core.store.getDelivery(core.orgId, id) : null
  if (row === null) throw notFound("delivery", String(id))
  return row
}

export async function parseQuery(core: Core, query: DeliveryQuery): Promise<DeliveryFilter> {
  requireObject(query, "query")
  refuseUnknown(query, FIELDS, "")
  for (const field of ["app", "endpoint", "message"] as const) optionalText(query[field], field)
  const { app, endpoint, message } = query
  if (app === undefined && endpoint !== undefined && !isId("ep", endpoint))
    throw invalid("endpoint", "must be an endpoint's id: a uid names one only together with its app")
  if (app === undefined && message !== undefined && !isId("msg", message))
    throw invalid("message", "must be a message's id: an event id names one only together with its app")
  const appId = app === undefined ? undefined : (await requireApplication(core, app)).id
  return {
    ...parseContent(query),
    // An application belongs to its tenant already.
    orgId: app === undefined ? core.orgId : undefined,
    appId,
    endpointId:
      app === undefined || endpoint === undefined
        ? endpoint
        : (await requireEndpoint(core, app, endpoint)).id,
    messageId:
      appId === undefined || message === undefined ? message : await messageIdOf(core, appId, message),
    status: oneOf(query.status, "status", STATUSES),
    live: query.live === undefined ? undefined : requireBoolean(query.live, "live"),
    calledOff: query.calledOff === undefined ? undefined : requireBoolean(query.calledOff, "calledOff"),
    deadReason: oneOf(query.deadReason, "deadReason", DEAD_REASONS),
    responseClass: oneOf(query.responseClass, "responseClass", RESPONSE_CLASSES),
  }
}

async function messageIdOf({ store }: Core, appId: string, key: string): Promise<string> {
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

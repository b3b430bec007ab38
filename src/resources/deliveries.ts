/** Deliveries, their attempts, the dead letters, and what an operator does with them. */
import { invalid, notFound, PosthornError } from "../core/errors.ts"
import { refuseUnknown, requireObject, requireText, requireTime } from "../core/input.ts"
import { cancel, isLive, revive } from "../core/operate.ts"
import { DEAD_REASONS, type DeadReason } from "../core/policy.ts"
import type { Change, DeliveryStatus } from "../core/settle.ts"
import { policyOf } from "../engine/target.ts"
import type { Attempt as AttemptRow, AttemptStatus, DeliveryFilter, Delivery as Row } from "../store/store.ts"
import {
  type Core,
  date,
  type List,
  listOf,
  newTask,
  type PageInput,
  pageOf,
  requireApplication,
  requireEndpoint,
} from "./core.ts"
import { show as showTask, type Task } from "./tasks.ts"

type Times = "nextRetryAt" | "lastAttemptedAt" | "receivedAt" | "deliveredAt" | "discardedAt"

export interface Delivery extends Omit<Row, "seq" | "ageFrom" | "stalls" | Times> {
  /** Null when nothing follows, and when it is due now. */
  readonly nextRetryAt: Date | null
  readonly lastAttemptedAt: Date | null
  readonly receivedAt: Date
  readonly deliveredAt: Date | null
  readonly discardedAt: Date | null
}

export interface Attempt extends Omit<AttemptRow, "seq" | "startedAt"> {
  readonly startedAt: Date
}

/** Which deliveries: those that fit everything that is given. */
export interface DeliveryQuery {
  /** An application, by id or uid. */
  app?: string
  /** An endpoint, by id; or by uid together with `app`. */
  endpoint?: string
  message?: string
  status?: DeliveryStatus
  deadReason?: DeadReason
  eventType?: string
  /** Received at or after. */
  since?: Date | number
  /** Received before. */
  until?: Date | number
}

export type DeadQuery = Omit<DeliveryQuery, "status">

export interface AttemptQuery extends PageInput {
  delivery?: string
  endpoint?: string
  message?: string
  status?: AttemptStatus
}

const FIELDS = ["app", "endpoint", "message", "status", "deadReason", "eventType", "since", "until"] as const
const STATUSES: readonly DeliveryStatus[] = ["pending", "failed", "delivered", "dead"]
const ATTEMPT_STATUSES: readonly AttemptStatus[] = ["succeeded", "failed", "unknown"]
const MOST_TRIES = 10

export class Deliveries {
  readonly #core: Core

  constructor(core: Core) {
    this.#core = core
  }

  /** Rejects with `not_found`. */
  async get(id: string): Promise<Delivery> {
    return show(await readDelivery(this.#core, id))
  }

  /** Newest first. */
  async list(query: DeliveryQuery & PageInput = {}): Promise<List<Delivery>> {
    requireObject(query, "query")
    const { limit: _limit, cursor: _cursor, ...filter } = query
    const page = pageOf(query)
    return listOf(
      await this.#core.store.listDeliveries(await parseQuery(this.#core, filter), page),
      page.limit,
      show,
    )
  }

  async count(query: DeliveryQuery = {}): Promise<number> {
    return this.#core.store.countDeliveries(await parseQuery(this.#core, query))
  }

  /** Newest first. */
  async attempts(query: AttemptQuery = {}): Promise<List<Attempt>> {
    requireObject(query, "query")
    refuseUnknown(query, ["delivery", "endpoint", "message", "status", "limit", "cursor"], "")
    for (const field of ["delivery", "endpoint", "message"] as const) optionalText(query[field], field)
    if (query.status !== undefined && !ATTEMPT_STATUSES.includes(query.status)) {
      throw invalid("status", `must be one of ${ATTEMPT_STATUSES.join(", ")}`)
    }
    const page = pageOf(query)
    const filter = {
      deliveryId: query.delivery,
      endpointId: query.endpoint,
      messageId: query.message,
      status: query.status,
    }
    return listOf(await this.#core.store.listAttempts(filter, page), page.limit, showAttempt)
  }

  /** Sends a finished delivery again, dead or delivered: attempt 0, due now, its age starts anew. One that waits becomes due now. */
  async retry(id: string): Promise<Delivery> {
    const { appId, endpointId } = await readDelivery(this.#core, id)
    if ((await this.#core.store.getEndpoint(appId, endpointId)) === null) {
      throw new PosthornError("conflict", `delivery "${id}" cannot be sent again: its endpoint was deleted`)
    }
    const { delivery, now } = await this.#amend(id, (row, now) => revive(row, now))
    this.#core.wake([{ endpointId: delivery.endpointId, appId: delivery.appId, dueAt: now }])
    return this.get(id)
  }

  /** Calls off a delivery that waits: dead, with the reason `cancelled`. */
  async cancel(id: string): Promise<Delivery> {
    const { appId, endpointId } = await readDelivery(this.#core, id)
    const endpoint = await this.#core.store.getEndpoint(appId, endpointId)
    const policy = endpoint === null ? this.#core.defaultPolicy : policyOf(endpoint, this.#core.defaultPolicy)
    const { delivery, change, now } = await this.#amend(id, (row, now) => {
      if (!isLive(row)) throw new PosthornError("conflict", `delivery "${id}" is ${row.status} already`)
      return cancel(row, policy, now)
    })
    this.#core.recall({ endpointId: delivery.endpointId })
    this.#core.reporter.settled(
      { delivery, endpointId: delivery.endpointId, change, attempt: null, detail: null },
      now,
    )
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

/** Dead letters: what was given up and not discarded. */
export class DeadLetters {
  readonly #core: Core
  readonly #deliveries: Deliveries

  constructor(core: Core, deliveries: Deliveries) {
    this.#core = core
    this.#deliveries = deliveries
  }

  async list(query: DeadQuery & PageInput = {}): Promise<List<Delivery>> {
    requireObject(query, "query")
    const { limit: _limit, cursor: _cursor, ...filter } = query
    const page = pageOf(query)
    return listOf(await this.#core.store.listDeliveries(await this.#filter(filter), page), page.limit, show)
  }

  /** How many `retryMany` or `discardMany` would take: the preview. */
  async count(query: DeadQuery = {}): Promise<number> {
    return this.#core.store.countDeliveries(await this.#filter(query))
  }

  retry(id: string): Promise<Delivery> {
    return this.#deliveries.retry(id)
  }

  /** Durable: goes on after a restart. Watch it with `tasks.get`, stop it with `tasks.cancel`. */
  retryMany(query: DeadQuery): Promise<Task> {
    return this.#start("retry", query)
  }

  /** No longer listed as a dead letter; its record stays until retention removes it. */
  async discard(id: string): Promise<Delivery> {
    const { seq, status, attemptCount } = await readDelivery(this.#core, id)
    if (status !== "dead") throw new PosthornError("conflict", `delivery "${id}" is ${status}, not dead`)
    const change = { discardedAt: this.#core.clock.now() }
    await this.#core.store.amend([
      { seq, expectedStatus: "dead", expectedAttemptCount: attemptCount, change },
    ])
    return this.#deliveries.get(id)
  }

  discardMany(query: DeadQuery): Promise<Task> {
    return this.#start("discard", query)
  }

  async #start(action: "retry" | "discard", query: DeadQuery): Promise<Task> {
    const task = await this.#core.store.createTask(
      await newTask(this.#core, action, await this.#filter(query)),
    )
    this.#core.wakeTasks()
    return showTask(task)
  }

  async #filter(query: DeadQuery): Promise<DeliveryFilter> {
    requireObject(query, "query")
    if ("status" in query) throw invalid("status", "is always dead here")
    return { ...(await parseQuery(this.#core, query)), status: "dead", undiscarded: true }
  }
}

function optionalText(value: unknown, field: string): void {
  if (value !== undefined) requireText(value, field, 256)
}

async function readDelivery(core: Core, id: string): Promise<Row> {
  const row = typeof id === "string" ? await core.store.getDelivery(id) : null
  if (row === null) throw notFound("delivery", String(id))
  return row
}

async function parseQuery(core: Core, query: DeliveryQuery): Promise<DeliveryFilter> {
  requireObject(query, "query")
  refuseUnknown(query, FIELDS, "")
  for (const field of ["app", "endpoint", "message", "eventType"] as const) optionalText(query[field], field)
  if (query.status !== undefined && !STATUSES.includes(query.status))
    throw invalid("status", `must be one of ${STATUSES.join(", ")}`)
  if (query.deadReason !== undefined && !DEAD_REASONS.includes(query.deadReason)) {
    throw invalid("deadReason", `must be one of ${DEAD_REASONS.join(", ")}`)
  }
  const byUid = query.endpoint !== undefined && query.app !== undefined
  return {
    appId: query.app === undefined ? undefined : (await requireApplication(core, query.app)).id,
    endpointId: byUid ? (await requireEndpoint(core, query.app!, query.endpoint!)).id : query.endpoint,
    messageId: query.message,
    status: query.status,
    deadReason: query.deadReason,
    eventType: query.eventType,
    since: query.since === undefined ? undefined : requireTime(query.since, "since"),
    until: query.until === undefined ? undefined : requireTime(query.until, "until"),
  }
}

function show({ seq: _seq, ageFrom: _ageFrom, stalls: _stalls, ...row }: Row): Delivery {
  return {
    ...row,
    nextRetryAt: date(row.nextRetryAt),
    lastAttemptedAt: date(row.lastAttemptedAt),
    receivedAt: date(row.receivedAt),
    deliveredAt: date(row.deliveredAt),
    discardedAt: date(row.discardedAt),
  }
}

function showAttempt({ seq: _seq, ...row }: AttemptRow): Attempt {
  return { ...row, startedAt: date(row.startedAt) }
}

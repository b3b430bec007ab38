/** Replays: an operator sends one message or many again to an endpoint. */
import { momentOf } from "../core/clock.ts"
import { invalid, PosthornError } from "../core/errors.ts"
import { optionalOneOf, refuseUnknown, requireObject } from "../core/input.ts"
import { DELIVERY_STATUSES, type DeliveryStatus } from "../core/settle.ts"
import type { TaskType } from "../core/task-types.ts"
import type { Endpoint } from "../store/store.ts"
import type { Deliveries, Delivery } from "./deliveries.ts"
import type { Messages } from "./messages.ts"
import {
  CONTENT_FIELDS,
  type ContentQuery,
  parseContent,
  RESPONSE_CLASSES,
  type ResponseClass,
} from "./query.ts"
import { type ResourceContext, requireEndpoint } from "./resource-context.ts"
import { startNewTask, type Task } from "./tasks.ts"

export interface ReplayQuery extends ContentQuery {
  status?: DeliveryStatus
  /** True: only unfinished deliveries. */
  live?: boolean
  calledOff?: boolean
  responseClass?: ResponseClass
}

export class Replays {
  readonly #context: ResourceContext
  readonly #messages: Messages
  readonly #deliveries: Deliveries

  constructor(context: ResourceContext, messages: Messages, deliveries: Deliveries) {
    this.#context = context
    this.#messages = messages
    this.#deliveries = deliveries
  }

  /** Sends one message to one endpoint, whether it has a delivery already or not. */
  async resend(app: string, message: string, endpoint: string): Promise<Delivery> {
    const { store, clock } = this.#context
    const target = await this.#target(app, endpoint)
    const { id, appId, expunged } = await this.#messages.get(app, message)
    if (expunged) throw new PosthornError("payload_gone", `the payload of message "${id}" was expunged`)
    const find = async () =>
      (await store.listDeliveries({ messageId: id, endpointId: target.id }, ONE))[0] ?? null
    const before = await find()
    if (before !== null) return this.#deliveries.retry(before.id)
    const at = momentOf(clock)
    const [added] = await store.addIfMissing([{ messageId: id, endpointId: target.id, manual: true }], at)
    if (added) this.#context.wake([{ endpointId: target.id, appId, dueAt: at.now }])
    const delivery = await find()
    if (delivery === null)
      throw new PosthornError(
        "conflict",
        `message "${id}" cannot be sent to endpoint "${target.id}" any more`,
      )
    return this.#deliveries.get(delivery.id)
  }

  /** Retries deliveries that were given up. */
  async recover(app: string, endpoint: string, window: Pick<ContentQuery, "since" | "until">): Promise<Task> {
    return this.#retry(app, endpoint, "endpoint.recover", { ...window, status: "dead", calledOff: false })
  }

  /** Sends all matching deliveries again, also delivered ones. */
  async replay(app: string, endpoint: string, query: ReplayQuery): Promise<Task> {
    return this.#retry(app, endpoint, "endpoint.bulk-replay", query)
  }

  /** Sends messages that match the endpoint and have no delivery for it: it was created, enabled or changed later. */
  async replayMissing(app: string, endpoint: string, query: ContentQuery): Promise<Task> {
    requireObject(query, "query")
    refuseUnknown(query, CONTENT_FIELDS, "")
    if (query.since === undefined) throw invalid("since", "is required")
    const content = parseContent(query)
    const { id, appId } = await this.#target(app, endpoint)
    const filter = { ...content, appId, endpointId: id }
    return startNewTask(this.#context, "replay", "endpoint.replay", filter)
  }

  /** Cancels deliveries that wait for the endpoint. */
  async cancelWaiting(app: string, endpoint: string, query: ContentQuery = {}): Promise<Task> {
    requireObject(query, "query")
    refuseUnknown(query, CONTENT_FIELDS, "")
    const { id } = await requireEndpoint(this.#context, app, endpoint)
    const filter = { ...parseContent(query), endpointId: id, live: true }
    const task = await startNewTask(this.#context, "cancel", "endpoint.cancel", filter)
    this.#context.recall({ endpointId: id })
    return task
  }

  async #retry(app: string, endpoint: string, type: TaskType, query: ReplayQuery): Promise<Task> {
    requireObject(query, "query")
    refuseUnknown(query, [...CONTENT_FIELDS, "status", "live", "calledOff", "responseClass"], "")
    if (query.since === undefined) throw invalid("since", "is required")
    const filter = {
      ...parseContent(query),
      live: query.live,
      calledOff: query.calledOff,
      status: optionalOneOf(query.status, "status", DELIVERY_STATUSES),
      responseClass: optionalOneOf(query.responseClass, "responseClass", RESPONSE_CLASSES),
    }
    const { id } = await this.#target(app, endpoint)
    return startNewTask(this.#context, "retry", type, { ...filter, endpointId: id })
  }

  /** Refuses a disabled endpoint: its deliveries would only be held. */
  async #target(app: string, endpoint: string): Promise<Endpoint> {
    const row = await requireEndpoint(this.#context, app, endpoint)
    if (row.disabled)
      throw new PosthornError("conflict", `endpoint "${row.id}" is disabled; enable it before sending again`)
    return row
  }
}

const ONE = { limit: 1, order: "descending", from: null, back: false } as const

/** Sending again on purpose: one message to one endpoint, what it missed, what it lost, or whatever fits. */
import { momentOf } from "../core/clock.ts"
import { invalid, PosthornError } from "../core/errors.ts"
import { refuseUnknown, requireObject } from "../core/input.ts"
import type { DeliveryStatus } from "../core/settle.ts"
import type { TaskType } from "../core/task-types.ts"
import type { Endpoint } from "../store/store.ts"
import type { Deliveries, Delivery } from "./deliveries.ts"
import type { Messages } from "./messages.ts"
import {
  CONTENT_FIELDS,
  type ContentQuery,
  oneOf,
  parseContent,
  RESPONSE_CLASSES,
  type ResponseClass,
} from "./query.ts"
import { newTask, type ResourceContext, requireEndpoint } from "./resource-context.ts"
import { startTask, type Task } from "./tasks.ts"

export interface ReplayQuery extends ContentQuery {
  status?: DeliveryStatus
  /** True: only those that are not finished. */
  live?: boolean
  calledOff?: boolean
  responseClass?: ResponseClass
}

const STATUSES: readonly DeliveryStatus[] = ["pending", "failed", "delivered", "dead"]

export class Replays {
  readonly #context: ResourceContext
  readonly #messages: Messages
  readonly #deliveries: Deliveries

  constructor(context: ResourceContext, messages: Messages, deliveries: Deliveries) {
    this.#context = context
    this.#messages = messages
    this.#deliveries = deliveries
  }

  /** One message to one endpoint, whatever became of it, and also when the endpoint never got it. */
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
    const [added] = await store.add([{ messageId: id, endpointId: target.id, manual: true }], at)
    if (added) this.#context.wake([{ endpointId: target.id, appId, dueAt: at.now }])
    const delivery = await find()
    if (delivery === null)
      throw new PosthornError(
        "conflict",
        `message "${id}" cannot be sent to endpoint "${target.id}" any more`,
      )
    return this.#deliveries.get(delivery.id)
  }

  /** What was given up on since then, again. */
  async recover(app: string, endpoint: string, window: Pick<ContentQuery, "since" | "until">): Promise<Task> {
    return this.#retry(app, endpoint, "endpoint.recover", {
      ...window,
      status: "dead",
      calledOff: false,
    })
  }

  /** Everything that fits, also what was delivered. */
  async replay(app: string, endpoint: string, query: ReplayQuery): Promise<Task> {
    return this.#retry(app, endpoint, "endpoint.bulk-replay", query)
  }

  /** The messages that the endpoint would have got and has no delivery of: it was created, enabled or changed later. */
  async replayMissing(app: string, endpoint: string, query: ContentQuery): Promise<Task> {
    requireObject(query, "query")
    refuseUnknown(query, CONTENT_FIELDS, "")
    if (query.since === undefined) throw invalid("since", "is required")
    const content = parseContent(query)
    const { id, appId } = await this.#target(app, endpoint)
    return startTask(
      this.#context,
      await newTask(this.#context, "replay", "endpoint.replay", { ...content, appId, endpointId: id }),
    )
  }

  /** Calls off what waits for the endpoint. */
  async cancelWaiting(app: string, endpoint: string, query: ContentQuery = {}): Promise<Task> {
    requireObject(query, "query")
    refuseUnknown(query, CONTENT_FIELDS, "")
    const { id } = await requireEndpoint(this.#context, app, endpoint)
    const filter = { ...parseContent(query), endpointId: id, live: true }
    const task = await startTask(
      this.#context,
      await newTask(this.#context, "cancel", "endpoint.cancel", filter),
    )
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
      status: oneOf(query.status, "status", STATUSES),
      responseClass: oneOf(query.responseClass, "responseClass", RESPONSE_CLASSES),
    }
    const { id } = await this.#target(app, endpoint)
    return startTask(
      this.#context,
      await newTask(this.#context, "retry", type, { ...filter, endpointId: id }),
    )
  }

  /** Held for an endpoint that is disabled, it would look as if nothing had happened. */
  async #target(app: string, endpoint: string): Promise<Endpoint> {
    const row = await requireEndpoint(this.#context, app, endpoint)
    if (row.disabled)
      throw new PosthornError("conflict", `endpoint "${row.id}" is disabled; enable it before sending again`)
    return row
  }
}

const ONE = { limit: 1, order: "descending", from: null, back: false } as const

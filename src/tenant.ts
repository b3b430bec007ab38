/** A tenant: its resources, and `send`. */
import { Agents } from "./resources/agents.ts"
import { Applications } from "./resources/applications.ts"
import { Attempts } from "./resources/attempts.ts"
import { Changes } from "./resources/changes.ts"
import { Costs } from "./resources/cost.ts"
import { DeadLetters } from "./resources/dead-letters.ts"
import { Deliveries } from "./resources/deliveries.ts"
import { Endpoints } from "./resources/endpoints.ts"
import { EventTypes } from "./resources/event-types.ts"
import { Keys } from "./resources/keys.ts"
import { Lanes } from "./resources/lanes.ts"
import {
  type BatchOptions,
  type MessageInput,
  Messages,
  type SendOptions,
  type SendResult,
} from "./resources/messages.ts"
import { ofNewest, type SearchEnd } from "./resources/newest.ts"
import { Policies } from "./resources/policies.ts"
import { parseSpan, type SpanQuery } from "./resources/query.ts"
import { Replays } from "./resources/replays.ts"
import { type ResourceContext, requireApplication } from "./resources/resource-context.ts"
import { Search } from "./resources/search.ts"
import { Sessions } from "./resources/sessions.ts"
import { Tasks } from "./resources/tasks.ts"
import { Usage } from "./resources/usage.ts"
import { Workers } from "./resources/workers.ts"
import { Sources } from "./sources/sources.ts"
import type { StatusCounts } from "./store/store.ts"

export class Tenant {
  readonly agents: Agents
  readonly applications: Applications
  readonly endpoints: Endpoints
  readonly eventTypes: EventTypes
  readonly policies: Policies
  readonly messages: Messages
  readonly deliveries: Deliveries
  readonly attempts: Attempts
  readonly changes: Changes
  readonly cost: Costs
  readonly dead: DeadLetters
  readonly keys: Keys
  readonly lanes: Lanes
  readonly replays: Replays
  /** @internal Used by the server. */
  readonly search: Search
  readonly sessions: Sessions
  readonly sources: Sources
  readonly tasks: Tasks
  readonly usage: Usage
  readonly workers: Workers
  /** @internal Used by the server. */
  readonly context: ResourceContext

  /** Use `openPosthorn`, and its `tenant`. */
  constructor(context: ResourceContext) {
    this.context = context
    this.agents = new Agents(context)
    this.applications = new Applications(context)
    this.endpoints = new Endpoints(context)
    this.eventTypes = new EventTypes(context)
    this.policies = new Policies(context)
    this.messages = new Messages(context)
    this.deliveries = new Deliveries(context)
    this.attempts = new Attempts(context)
    this.changes = new Changes(context)
    this.cost = new Costs(context)
    this.dead = new DeadLetters(context, this.deliveries)
    this.keys = new Keys(context)
    this.lanes = new Lanes(context)
    this.replays = new Replays(context, this.messages, this.deliveries)
    this.search = new Search(context)
    this.sessions = new Sessions(context)
    this.sources = new Sources(context)
    this.tasks = new Tasks(context)
    this.usage = new Usage(context)
    this.workers = new Workers(context)
  }

  /** Resolves when the message and its deliveries are on disk; with `tx`, when they are part of that transaction. */
  send(app: string, message: MessageInput, options?: SendOptions): Promise<SendResult> {
    return this.messages.send(app, message, options)
  }

  /** All or none, in this order. */
  sendBatch(app: string, messages: readonly MessageInput[], options?: BatchOptions): Promise<SendResult[]> {
    return this.messages.sendBatch(app, messages, options)
  }

  /** Deliveries by status: of the tenant or one application, and of messages received in a span. */
  async stats(app?: string, span: SpanQuery = {}): Promise<StatusCounts> {
    const { store, orgId } = this.context
    const received = parseSpan(span)
    if (app === undefined) return store.countByStatus({ orgId, ...received })
    return store.countByStatus({ appId: (await requireApplication(this.context, app)).id, ...received })
  }

  /** As `stats`, of the newest 10 000 deliveries. */
  async statsOfNewest(app?: string, span: SpanQuery = {}): Promise<StatusCounts & SearchEnd> {
    const { store, orgId } = this.context
    const received = parseSpan(span)
    const of = app === undefined ? { orgId } : { appId: (await requireApplication(this.context, app)).id }
    const { found, searchedTo } = await ofNewest(store, { ...of, ...received }, (bound) =>
      store.countByStatus(bound),
    )
    return { ...found, searchedTo }
  }
}

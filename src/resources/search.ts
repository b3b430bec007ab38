/** Finds things by their id, uid or exact name. Every lookup is by an index: none grows with the number of messages. */
import { isId } from "../core/ids.ts"
import { isPreset } from "../core/presets.ts"
import { AGENT_KIND, agentRecordOf, entryNameOf } from "../relay/agent-record.ts"
import { SourceNames } from "../sources/source-names.ts"
import { recordOf, SOURCE_KIND } from "../sources/source-record.ts"
import type { Application, Endpoint, Entry, Message } from "../store/store.ts"
import { type ResourceContext, requireApplication } from "./resource-context.ts"

export const FOUND_KINDS = [
  "application",
  "endpoint",
  "message",
  "delivery",
  "source",
  "agent",
  "event-type",
  "policy",
  "task",
  "alert",
] as const
export type FoundKind = (typeof FOUND_KINDS)[number]

export interface Found {
  readonly kind: FoundKind
  /** Of event types, policies and agents: the name. */
  readonly id: string
  /** Null for things of the whole tenant. */
  readonly appId: string | null
  /** Its name for people. */
  readonly label: string
}

export const MOST_FOUND = 10
const PAGE = { limit: MOST_FOUND, order: "descending", from: null, back: false } as const
/** Ids, uids, event ids and names of event types and policies. Names of applications may be any text. */
const NAME = /^[\w.-]{1,256}$/

export class Search {
  readonly #context: ResourceContext

  constructor(context: ResourceContext) {
    this.#context = context
  }

  /** In the whole tenant. */
  async everywhere(text: string): Promise<Found[]> {
    const { store, orgId } = this.#context
    // PostgreSQL's text cannot hold this character.
    if (text.includes("\0")) return []
    const named = store.listApplications(orgId, PAGE, { name: text })
    if (!NAME.test(text)) return (await named).map(ofApplication)
    const application = await store.getApplication(orgId, text)
    const found = await Promise.all([
      named.then((all) => unique(application, all).map(ofApplication)),
      this.#endpoints(text),
      this.#messages(text),
      this.#delivery(text),
      this.#source(text),
      this.#entry(AGENT_KIND, text).then((one) => one.map(ofAgent)),
      this.#entry("event-type", text).then((one) => one.map(({ name }) => ofTenant("event-type", name))),
      this.#policy(text),
      this.#task(text),
    ])
    return found.flat().slice(0, MOST_FOUND)
  }

  /** In one application, by id or uid. Rejects with `not_found`. */
  async inApplication(app: string, text: string): Promise<Found[]> {
    const { store } = this.#context
    const { id: appId } = await requireApplication(this.#context, app)
    if (!NAME.test(text)) return []
    const sourceId = (await new SourceNames(this.#context, appId).idOf(text)) ?? text
    const found = await Promise.all([
      store.getEndpoint(appId, text).then((one) => (one === null ? [] : [ofEndpoint(one)])),
      store.getMessage(appId, text).then((one) => (one === null ? [] : [ofMessage(one)])),
      this.#delivery(text),
      this.#source(sourceId),
      this.#entry(AGENT_KIND, entryNameOf(appId, text)).then((one) => one.map(ofAgent)),
    ])
    return found.flat().filter((one) => one.appId === appId)
  }

  async #endpoints(text: string): Promise<Found[]> {
    const { store, orgId } = this.#context
    if (!isId("ep", text)) return (await store.listEndpoints({ orgId, uid: text }, PAGE)).map(ofEndpoint)
    return (await store.listEndpoints({ orgId, endpointId: text }, PAGE)).map(ofEndpoint)
  }

  async #messages(text: string): Promise<Found[]> {
    const { store, orgId } = this.#context
    if (!isId("msg", text)) return (await store.findMessages(orgId, text, MOST_FOUND)).map(ofMessage)
    const [message] = await store.getMessages([text], false)
    // The message of another tenant has an application of that tenant.
    if (message === undefined || (await store.getApplication(orgId, message.appId)) === null) return []
    return [ofMessage(message)]
  }

  async #delivery(text: string): Promise<Found[]> {
    const { store, orgId } = this.#context
    const delivery = isId("dlv", text) ? await store.getDelivery(orgId, text) : null
    if (delivery === null) return []
    const { id, appId, eventType, status } = delivery
    return [{ kind: "delivery", id, appId, label: `${eventType}, ${status}` }]
  }

  async #source(text: string): Promise<Found[]> {
    if (!isId("src", text)) return []
    const entries = await this.#entry(SOURCE_KIND, text)
    return entries.map((entry) => ({
      kind: "source",
      id: entry.name,
      appId: entry.owner!,
      label: recordOf(entry).name,
    }))
  }

  async #policy(text: string): Promise<Found[]> {
    const { store, orgId } = this.#context
    const exists = isPreset(text) || (await store.getPolicy(orgId, text)) !== null
    return exists ? [ofTenant("policy", text)] : []
  }

  async #task(text: string): Promise<Found[]> {
    const { store, orgId } = this.#context
    const task = isId("qtask", text) ? await store.getTask(orgId, text) : null
    return task === null ? [] : [ofTenant("task", task.id, task.action)]
  }

  async #entry(kind: Entry["kind"], name: string): Promise<Entry[]> {
    const { store, orgId, clock } = this.#context
    const entry = await store.getEntry(kind, orgId, name, clock.now())
    return entry === null ? [] : [entry]
  }
}

function unique(first: Application | null, others: readonly Application[]): Application[] {
  return first === null ? [...others] : [first, ...others.filter(({ id }) => id !== first.id)]
}

function ofTenant(kind: FoundKind, id: string, label = id): Found {
  return { kind, id, appId: null, label }
}

function ofApplication({ id, name }: Application): Found {
  return { kind: "application", id, appId: id, label: name }
}

function ofEndpoint({ id, appId, uid, url }: Endpoint): Found {
  return { kind: "endpoint", id, appId, label: uid === null ? url : `${uid} (${url})` }
}

function ofMessage({ id, appId, eventType, eventId }: Message): Found {
  return { kind: "message", id, appId, label: `${eventType} ${eventId ?? id}` }
}

function ofAgent(entry: Entry): Found {
  const { name } = agentRecordOf(entry)
  return { kind: "agent", id: name, appId: entry.owner!, label: name }
}

/** Event types: the catalogue of what a tenant sends, with schemas for its readers. Sending does not depend on it. */
import { isDeepStrictEqual } from "node:util"
import { invalid, notFound, PosthornError } from "../core/errors.ts"
import { refuseUnknown, requireName, requireObject } from "../core/input.ts"
import type { Entry, Page } from "../store/store.ts"
import { type EventTypeBody, type EventTypeInput, parsePatch, parseWhole } from "./event-type-input.ts"
import { readAndSave } from "./optimistic.ts"
import {
  type List,
  type Listing,
  listing,
  listPage,
  PAGE_FIELDS,
  type PageInput,
  pageByName,
} from "./paging.ts"
import { date, type ResourceContext } from "./resource-context.ts"

export type { EventTypeInput } from "./event-type-input.ts"

interface Stored extends EventTypeBody {
  /** Tells a request that is run again after a crash that this is what it made. */
  readonly id: string
}

export interface EventType extends EventTypeBody {
  readonly name: string
  readonly createdAt: Date
  readonly updatedAt: Date
}

export interface EventTypeQuery extends PageInput {
  includeArchived?: boolean
  /** Leaves out those for which it says no. */
  visible?: (type: EventType) => boolean
}

const KIND = "event-type"

export class EventTypes {
  readonly #context: ResourceContext

  constructor(context: ResourceContext) {
    this.#context = context
  }

  /** One that was archived comes back; one that is there is a conflict. */
  async create(input: EventTypeInput): Promise<EventType> {
    requireObject(input, "event type")
    const { name, ...fields } = input
    requireName(name, "name")
    const body = await parseWhole(fields)
    const id = this.#newId()
    const before = await this.#read(name)
    if (before !== null && bodyOf(before).id === id) return show(before)
    if (before !== null && !bodyOf(before).archived)
      throw new PosthornError("conflict", `event type "${name}" exists already`, { field: "name" })
    return this.#save(name, { ...body, id }, before)
  }

  async get(name: string): Promise<EventType> {
    return show(await this.#require(name))
  }

  /** By name. */
  list(query: EventTypeQuery = {}): Listing<EventType> {
    return listing(query, (asked) => this.#page(asked))
  }

  async #page(query: EventTypeQuery): Promise<List<EventType>> {
    requireObject(query, "query")
    refuseUnknown(query, [...PAGE_FIELDS, "includeArchived", "visible"], "")
    const { includeArchived = false, visible = () => true } = query
    const wanted = (entry: Entry) => (includeArchived || !bodyOf(entry).archived) && visible(show(entry))
    return listPage(
      pageByName(query),
      (page) => this.#readWanted(page, wanted),
      ({ name }) => name,
      show,
    )
  }

  /** Creates it or replaces all that it says; tells which. */
  async put(
    name: string,
    input: Omit<EventTypeInput, "name">,
  ): Promise<{ type: EventType; created: boolean }> {
    return readAndSave(async () => {
      const { body, before } = await this.#compare({ name, ...input })
      return { type: await this.#save(name, body, before), created: before === null }
    })
  }

  /** Those of them that are new or say something else than what is there; all are checked. */
  async changes(types: readonly EventTypeInput[], at = listed): Promise<EventTypeInput[]> {
    return (await this.#compareAll(types, at)).map(({ name, body: { id: _id, ...body } }) => ({
      name,
      ...body,
    }))
  }

  /** Creates and replaces; nothing is written unless all are fit to be, and nothing of what is there already. Says which it wrote. */
  async putAll(types: readonly EventTypeInput[], at = listed): Promise<string[]> {
    const written: string[] = []
    for (const type of await this.changes(types, at))
      if (await readAndSave(() => this.#putIfNew(type))) written.push(type.name)
    return written
  }

  async update(name: string, input: Partial<Omit<EventTypeInput, "name">>): Promise<EventType> {
    requireObject(input, "event type")
    const patch = await parsePatch(input)
    return readAndSave(async () => {
      const before = await this.#require(name)
      return this.#save(name, { ...bodyOf(before), ...patch }, before)
    })
  }

  /** Archived, so that what was sent keeps its meaning; `expunge` removes it for good. */
  async delete(name: string, { expunge = false }: { readonly expunge?: boolean } = {}): Promise<void> {
    if (!expunge) {
      await this.update(name, { archived: true })
      return
    }
    await this.#require(name)
    await this.#context.store.deleteEntry(KIND, this.#context.orgId, name)
  }

  async #compareAll(types: readonly EventTypeInput[], at: typeof listed): Promise<Compared[]> {
    const compared: Compared[] = []
    const names = new Set<string>()
    for (const [i, type] of types.entries()) {
      const one = await this.#compare(type).catch((error: PosthornError) => {
        throw error.field === undefined ? error : error.within(at(type, i))
      })
      if (names.has(one.name)) throw invalid(`${at(type, i)}.name`, "is there twice")
      names.add(one.name)
      if (saysMore(one)) compared.push(one)
    }
    return compared
  }

  async #putIfNew(type: EventTypeInput): Promise<boolean> {
    const compared = await this.#compare(type)
    if (!saysMore(compared)) return false
    await this.#save(compared.name, compared.body, compared.before)
    return true
  }

  async #compare(input: EventTypeInput): Promise<Compared> {
    requireObject(input, "event type")
    const { name, ...fields } = input
    requireName(name, "name")
    const body = await parseWhole(fields)
    const before = await this.#read(name)
    return { name, body: { ...body, id: before === null ? this.#newId() : bodyOf(before).id }, before }
  }

  #newId(): string {
    return this.#context.ids.make("evtype", this.#context.clock.now())
  }

  async #save(name: string, body: Stored, before: Entry | null): Promise<EventType> {
    const now = this.#context.clock.now()
    const entry: Entry = {
      kind: KIND,
      orgId: this.#context.orgId,
      name,
      body: JSON.stringify(body),
      version: (before?.version ?? 0) + 1,
      createdAt: before?.createdAt ?? now,
      updatedAt: now,
      expiresAt: null,
    }
    await this.#context.store.saveEntry(entry)
    return show(entry)
  }

  /** Page after page, until there are as many as asked for. */
  async #readWanted(page: Page<string>, wanted: (entry: Entry) => boolean): Promise<Entry[]> {
    const { store, orgId, clock } = this.#context
    const found: Entry[] = []
    let { from } = page
    while (found.length < page.limit) {
      const read = { ...page, from, limit: 250 }
      const entries = await store.listEntries(KIND, orgId, read, clock.now())
      const some = entries.filter(wanted)
      if (page.back) found.unshift(...some)
      else found.push(...some)
      if (entries.length < read.limit) break
      from = (page.back ? entries[0] : entries.at(-1))!.name
    }
    return page.back ? found.slice(-page.limit) : found.slice(0, page.limit)
  }

  #read(name: string): Promise<Entry | null> {
    const { store, orgId, clock } = this.#context
    return store.getEntry(KIND, orgId, name, clock.now())
  }

  async #require(name: string): Promise<Entry> {
    const entry = typeof name === "string" ? await this.#read(name) : null
    if (entry === null) throw notFound("event type", String(name))
    return entry
  }
}

interface Compared {
  readonly name: string
  readonly body: Stored
  /** What is there. */
  readonly before: Entry | null
}

function saysMore({ body, before }: Compared): boolean {
  return before === null || !isDeepStrictEqual(bodyOf(before), body)
}

function listed(_type: EventTypeInput, index: number): string {
  return `eventTypes[${index}]`
}

function bodyOf(entry: Entry): Stored {
  return JSON.parse(entry.body)
}

function show(entry: Entry): EventType {
  const { id: _id, ...body } = bodyOf(entry)
  return {
    name: entry.name,
    ...body,
    createdAt: date(entry.createdAt),
    updatedAt: date(entry.updatedAt),
  }
}

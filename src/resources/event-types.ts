/** Event types: the tenant's catalogue, with schemas for its readers. Sending does not depend on it. */
import { isDeepStrictEqual } from "node:util"
import { invalid, PosthornError } from "../core/errors.ts"
import { requireName, requireObject } from "../core/input.ts"
import type { Entry, Page } from "../store/store.ts"
import { type EventTypeBody, type EventTypeInput, parsePatch, parseWhole } from "./event-type-input.ts"
import { readAndSave } from "./optimistic.ts"
import { byName, type Listing, listing, type PageInput } from "./paging.ts"
import { date, type ResourceContext, requireFound } from "./resource-context.ts"

export type { EventTypeInput } from "./event-type-input.ts"

interface Stored extends EventTypeBody {
  /** Shows a request that is repeated after a crash that it made this event type. */
  readonly id: string
}

export interface EventType extends EventTypeBody {
  readonly name: string
  readonly createdAt: Date
  readonly updatedAt: Date
}

export interface EventTypeQuery extends PageInput {
  includeArchived?: boolean
  /** Leaves out event types for which it returns false. */
  visible?: (type: EventType) => boolean
}

const KIND = "event-type"

export class EventTypes {
  readonly #context: ResourceContext

  constructor(context: ResourceContext) {
    this.#context = context
  }

  /** Restores an archived event type. Any other with this name is a conflict. */
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
    return listing(query, {
      fields: ["includeArchived", "visible"],
      by: byName,
      read: async ({ includeArchived = false, visible = () => true }) => {
        const wanted = (entry: Entry) => (includeArchived || !bodyOf(entry).archived) && visible(show(entry))
        return (page) => this.#readWanted(page, wanted)
      },
      show,
    })
  }

  /** Creates it, or replaces all its fields. */
  async put(
    name: string,
    input: Omit<EventTypeInput, "name">,
  ): Promise<{ type: EventType; created: boolean }> {
    return readAndSave(async () => {
      const { body, before } = await this.#compare({ name, ...input })
      return { type: await this.#save(name, body, before), created: before === null }
    })
  }

  /** Returns the given event types that are new or differ from the stored ones. All are checked. */
  async changes(types: readonly EventTypeInput[], at = listed): Promise<EventTypeInput[]> {
    return (await this.#compareAll(types, at)).map(({ name, body: { id: _id, ...body } }) => ({
      name,
      ...body,
    }))
  }

  /** Creates new event types and replaces those that differ. Writes nothing unless all are valid. Returns the names that it wrote. */
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

  /** Archives it, so that messages sent earlier keep their meaning. `expunge` removes it for good. */
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
      if (differs(one)) compared.push(one)
    }
    return compared
  }

  async #putIfNew(type: EventTypeInput): Promise<boolean> {
    const compared = await this.#compare(type)
    if (!differs(compared)) return false
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
    await this.#context.store.saveEntryIfUnchanged(entry)
    return show(entry)
  }

  /** Reads page after page until the limit is reached. */
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

  #require(name: string): Promise<Entry> {
    return requireFound("event type", name, (key) => this.#read(key))
  }
}

interface Compared {
  readonly name: string
  readonly body: Stored
  /** The stored entry. */
  readonly before: Entry | null
}

function differs({ body, before }: Compared): boolean {
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

/**
 * The names of an application's sources, in one entry, so that two calls at once cannot take the same name or exceed the limit. A name
 * is reserved before its source is written; a reservation that a crash left behind is void after a minute.
 */
import { PosthornError } from "../core/errors.ts"
import { readAndSave } from "../resources/optimistic.ts"
import type { ResourceContext } from "../resources/resource-context.ts"
import type { Entry } from "../store/store.ts"
import { recordOf, SOURCE_KIND } from "./source-record.ts"

const KIND = "source-names"
const MOST_SOURCES = 100
const RESERVED_MS = 60_000

interface Holder {
  readonly id: string
  readonly since: number
}
type Names = { readonly [name: string]: Holder }

export class SourceNames {
  readonly #context: ResourceContext
  readonly #appId: string

  constructor(context: ResourceContext, appId: string) {
    this.#context = context
    this.#appId = appId
  }

  async idOf(name: string): Promise<string | null> {
    const names = namesOf(await this.#read())
    return Object.hasOwn(names, name) ? names[name]!.id : null
  }

  /** Rejects with `conflict` when another source has the name, and with `limit_reached`. */
  async reserve(name: string, id: string): Promise<void> {
    await readAndSave(async () => {
      const entry = await this.#read()
      let names = namesOf(entry)
      const holder = Object.hasOwn(names, name) ? names[name]! : null
      if (holder !== null && holder.id !== id && (await this.#isHeld(name, holder)))
        throw new PosthornError("conflict", `another source of the application has the name "${name}"`, {
          field: "name",
        })
      if (isFull(names, name)) names = await this.#held(names)
      if (isFull(names, name))
        throw new PosthornError(
          "limit_reached",
          `an application has at most ${MOST_SOURCES} sources; delete one first`,
        )
      await this.#save(entry, { ...names, [name]: { id, since: this.#context.clock.now() } })
    })
  }

  async release(name: string, id: string): Promise<void> {
    await readAndSave(async () => {
      const entry = await this.#read()
      const names = namesOf(entry)
      if (!Object.hasOwn(names, name) || names[name]!.id !== id) return
      const { [name]: _, ...others } = names
      await this.#save(entry, others)
    })
  }

  async #held(names: Names): Promise<Names> {
    const held: [string, Holder][] = []
    for (const [name, holder] of Object.entries(names))
      if (await this.#isHeld(name, holder)) held.push([name, holder])
    return Object.fromEntries(held)
  }

  async #isHeld(name: string, { id, since }: Holder): Promise<boolean> {
    const { store, orgId, clock } = this.#context
    const now = clock.now()
    if (now - since < RESERVED_MS) return true
    const source = await store.getEntry(SOURCE_KIND, orgId, id, now)
    return source !== null && recordOf(source).name === name
  }

  #read(): Promise<Entry | null> {
    const { store, orgId, clock } = this.#context
    return store.getEntry(KIND, orgId, this.#appId, clock.now())
  }

  async #save(before: Entry | null, names: Names): Promise<void> {
    const { store, orgId, clock } = this.#context
    const now = clock.now()
    await store.saveEntryIfUnchanged({
      kind: KIND,
      orgId,
      name: this.#appId,
      body: JSON.stringify(names),
      version: (before?.version ?? 0) + 1,
      createdAt: before?.createdAt ?? now,
      updatedAt: now,
      expiresAt: null,
    })
  }
}

export function forgetNames({ store, orgId }: ResourceContext, appId: string): Promise<void> {
  return store.deleteEntry(KIND, orgId, appId)
}

function isFull(names: Names, name: string): boolean {
  return !Object.hasOwn(names, name) && Object.keys(names).length >= MOST_SOURCES
}

function namesOf(entry: Entry | null): Names {
  return entry === null ? {} : JSON.parse(entry.body)
}

/** A store whose documents, sums and sends fail from a moment that the test chooses. Lanes go on. */
import { PosthornError } from "../../src/core/errors.ts"
import type { Entry, Store } from "../../src/store/store.ts"

const METHODS = [
  "getEntry",
  "listEntries",
  "saveEntryIfUnchanged",
  "survey",
  "sumRollups",
  "listEndpoints",
  "getApplication",
  "getEndpoint",
  "acceptMany",
] as const satisfies readonly (keyof Store)[]

export class FailingStore {
  isBroken = false
  /** Called with every entry that was written. */
  onSaved: (entry: Entry) => void = () => undefined

  wrap(store: Store): Store {
    const wrapped = METHODS.map((name) => {
      const method = store[name] as (...args: unknown[]) => Promise<unknown>
      const call = async (...args: unknown[]) => {
        if (this.isBroken) throw new PosthornError("store_unavailable", "connection refused")
        const result = await method.apply(store, args)
        if (name === "saveEntryIfUnchanged") this.onSaved(args[0] as Entry)
        return result
      }
      return [name, call]
    })
    return { ...store, ...Object.fromEntries(wrapped) }
  }
}

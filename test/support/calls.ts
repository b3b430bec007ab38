/** Watches what is asked of a store, to tell when everything that was set off has run its course, however many connections it uses. */
import type { Engine } from "../../src/engine/engine.ts"
import type { Store } from "../../src/store/store.ts"
import { wrapLanes } from "./wrap-lanes.ts"

export class Calls {
  readonly #underWay = new Set<Promise<unknown>>()
  #count = 0

  watch(store: Store): Store {
    const watched = wrapLanes(store, (session) => ({
      fetch: (...args) => this.#note(session.fetch(...args)),
      settleIfClaimed: (...args) => this.#note(session.settleIfClaimed(...args)),
      giveBack: (...args) => this.#note(session.giveBack(...args)),
      close: () => this.#note(session.close()),
    }))
    return new Proxy(watched, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name)
        return typeof value === "function"
          ? (...args: unknown[]) => this.#note(value.apply(target, args))
          : value
      },
    })
  }

  /** Resolves when every call is answered and no call follows. Requests may still be in flight. */
  async whenAnswered(engine: Engine | null): Promise<void> {
    for (let calm = 0; calm < 3; calm++) {
      const before = this.#count
      await Promise.allSettled(this.#underWay)
      await new Promise((resolve) => setImmediate(resolve))
      if (this.#count > before || this.#underWay.size > 0 || engine?.isLooking) calm = -1
    }
  }

  #note<T>(answer: T): T {
    if (!(answer instanceof Promise)) return answer
    this.#count++
    this.#underWay.add(answer)
    const forget = () => void this.#underWay.delete(answer)
    answer.then(forget, forget)
    return answer
  }
}

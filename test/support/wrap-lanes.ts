/** A store whose lane sessions do something else, or something more, than they would. */
import type { LaneSession, Store } from "../../src/store/store.ts"

export function wrapLanes(store: Store, wrap: (session: LaneSession) => Partial<LaneSession>): Store {
  return {
    ...store,
    openLane: (...args) => {
      const session = store.openLane(...args)
      const wrapped = wrap(session)
      return {
        get isOpen() {
          return session.isOpen
        },
        fetch: wrapped.fetch ?? ((...fetch) => session.fetch(...fetch)),
        settleIfClaimed: wrapped.settleIfClaimed ?? ((...settle) => session.settleIfClaimed(...settle)),
        giveBack: wrapped.giveBack ?? ((...giveBack) => session.giveBack(...giveBack)),
        close: wrapped.close ?? (() => session.close()),
      }
    },
  }
}

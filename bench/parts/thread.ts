/** The gain of SQLite's own thread, against the same engine with the store on the main thread. */
import { rmSync } from "node:fs"
import { join } from "node:path"
import { monitorEventLoopDelay } from "node:perf_hooks"
import type { Store } from "../../src/store/store.ts"
import type { Bench, Part, Values } from "../harness/bench.ts"
import { compared } from "../harness/compared.ts"
import { Library, type Traffic, temporaryFolder } from "../harness/library.ts"
import { storeOnMainThread } from "../harness/main-thread-store.ts"
import { type Round, race } from "../harness/rounds.ts"
import { median } from "../harness/statistics.ts"

interface Turn extends Round {
  readonly loopP99Ms: number
}

async function measure(bench: Bench): Promise<Values> {
  const folder = temporaryFolder()
  const own = await Library.open(bench.receiver)
  const wrapStore = (store: Store) => inPlaceOf(store, join(folder, "main-thread.db"))
  const main = await Library.open(bench.receiver, {}, { wrapStore })
  try {
    const [onOwn, onMain] = [await own.traffic("app", 1), await main.traffic("app", 1)]
    const turns = await race(
      { own: (count) => watched(onOwn, count), main: (count) => watched(onMain, count) },
      bench.turns,
    )
    return {
      ...compared("thread", turns.own, "onMainThread", turns.main),
      "thread.loopP99Ms": median(turns.own.map(loopP99Ms)),
      "thread.onMainThreadLoopP99Ms": median(turns.main.map(loopP99Ms)),
    }
  } finally {
    await own.close()
    await main.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function watched(traffic: Traffic, count: number): Promise<Turn> {
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  const round = await traffic.run(count)
  delay.disable()
  return { ...round, loopP99Ms: delay.percentile(99) / 1e6 }
}

const loopP99Ms = (turn: Turn) => turn.loopP99Ms

/** The first store stays idle, and is closed with the other one. */
function inPlaceOf(opened: Store, path: string): Store {
  const store = storeOnMainThread(path)
  return {
    ...store,
    close: async () => {
      await opened.close()
      await store.close()
    },
  }
}

export const threadPart: Part = { names: ["thread.ratio"], isAside: true, run: measure }

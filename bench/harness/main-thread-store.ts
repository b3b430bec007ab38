/** The gain of SQLite's own thread, against the same engine with the store on the main thread. */

import { type Call, Executor } from "../../src/store/sqlite/executor.ts"
import { OPERATIONS, type OperationName } from "../../src/store/sqlite/operations.ts"
import type { Store } from "../../src/store/store.ts"

interface Waiting {
  readonly call: Call
  resolve(value: unknown): void
  reject(error: unknown): void
}

/** Calls of one event loop tick share a transaction, as on the thread. */
export function storeOnMainThread(path: string): Store {
  const executor = new Executor({ path, role: "owner" })
  let waiting: Waiting[] = []
  const flush = () => {
    const batch = waiting
    waiting = []
    let next = 0
    const answers = executor.run(() => batch[next++]?.call)
    for (const [i, answer] of answers.entries()) {
      if ("value" in answer) batch[i]!.resolve(answer.value)
      else batch[i]!.reject(new Error(answer.failure.message))
    }
  }
  const methods: { [name: string]: unknown } = { settlesTogether: true, close: async () => executor.close() }
  for (const name of Object.keys(OPERATIONS) as OperationName[]) {
    methods[name] = (...args: unknown[]) =>
      new Promise((resolve, reject) => {
        if (waiting.length === 0) setImmediate(flush)
        waiting.push({ call: [name, args], resolve, reject })
      })
  }
  return methods as unknown as Store
}

/** A SQLite store on the main thread, to measure the gain of its own thread. */
import type { Channel } from "../../src/store/sqlite/channel.ts"
import { type Call, Executor } from "../../src/store/sqlite/executor.ts"
import { LaneSessions } from "../../src/store/sqlite/lane-sessions.ts"
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
  const call: Channel["call"] = (name, args, receive = (value) => value as never) =>
    new Promise((resolve, reject) => {
      if (waiting.length === 0) setImmediate(flush)
      waiting.push({ call: [name, args], resolve: (value) => resolve(receive(value)), reject })
    })
  const sessions = new LaneSessions({ call } as Channel)
  const methods = Object.keys(OPERATIONS).map((name) => [
    name,
    (...args: unknown[]) => call(name as OperationName, args),
  ])
  return {
    ...Object.fromEntries(methods),
    acceptMany: (messages, tx) => sessions.accept(messages, tx),
    openLane: (claim, listener, knownVersion) => sessions.open(claim, listener, knownVersion),
    close: async () => executor.close(),
  } satisfies Partial<Store> as unknown as Store
}

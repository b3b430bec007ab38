/** The worker thread that SQLite runs on: batches in, answers out. A sync never holds up the sending of requests. */
import { parentPort, workerData } from "node:worker_threads"
import { toPosthornError } from "./errors.ts"
import {
  type Answer,
  type Call,
  Executor,
  type ExecutorOptions,
  type Failure,
  toFailure,
} from "./executor.ts"

export type ToThread = { readonly calls: readonly Call[] } | "close"
export type FromThread =
  | "open"
  | { readonly answers: readonly Answer[] }
  | { readonly openFailed: Failure }
  | "closed"

const port = parentPort!
const answer = (message: FromThread) => port.postMessage(message)

try {
  const executor = new Executor(workerData as ExecutorOptions)
  port.on("message", (message: ToThread) => {
    if (message !== "close") return answer({ answers: executor.run(message.calls) })
    executor.close()
    answer("closed")
    port.close()
  })
  answer("open")
} catch (error) {
  answer({ openFailed: toFailure(toPosthornError(error)) })
  port.close()
}

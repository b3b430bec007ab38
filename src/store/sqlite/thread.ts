/** The worker thread that SQLite runs on: batches in, answers out. A sync never holds up the sending of requests. */
import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads"
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
  /** Of one batch or of several, in their order. */
  | { readonly answers: readonly Answer[] }
  | { readonly openFailed: Failure }
  | "closed"

const port = parentPort!
const answer = (message: FromThread) => port.postMessage(message)

try {
  const executor = new Executor(workerData as ExecutorOptions)
  let closing = false
  const close = () => {
    executor.close()
    answer("closed")
    port.close()
  }
  /** The batch that came in while this one was worked on goes into the same transaction: one sync less. */
  const more = (): readonly Call[] => {
    const next = closing ? undefined : receiveMessageOnPort(port)
    if (next === undefined) return []
    if (next.message !== "close") return (next.message as Exclude<ToThread, "close">).calls
    closing = true
    return []
  }
  port.on("message", (message: ToThread) => {
    if (message === "close") return close()
    answer({ answers: executor.run(message.calls, more) })
    if (closing) close()
  })
  answer("open")
} catch (error) {
  answer({ openFailed: toFailure(toPosthornError(error)) })
  port.close()
}

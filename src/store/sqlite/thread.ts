/** The worker thread that SQLite runs on, so that a sync does not block the sending of requests. */
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
import type { OperationName } from "./operations.ts"
import { wireOf } from "./wire.ts"

export type ToThread = { readonly calls: readonly Call[] } | "finish" | "close"
export type FromThread =
  | "open"
  /** In the order of the calls. */
  | { readonly answers: readonly Answer[] }
  | { readonly openFailed: Failure }
  /** The file has failed after earlier answers. */
  | { readonly lost: Failure }
  /** Answers to "finish": every earlier call is done, and the file is sound or has failed. */
  | "finished"
  | "failed"
  | "closed"

/**
 * While a transaction is written, the main thread works on the answers of the one before. Without a limit both threads would take turns
 * and be idle for a third of the time.
 */
const MOST_IN_A_TRANSACTION = 128

const port = parentPort!
const answer = (message: FromThread) => port.postMessage(message)

try {
  const executor = new Executor(workerData as ExecutorOptions)
  let asked: "finish" | "close" | null = null
  let calls: readonly Call[] = []
  let taken = 0
  const receive = (message: ToThread) => {
    if (message === "close" || message === "finish") asked = message
    else {
      calls = message.calls
      taken = 0
    }
  }
  const hasMore = (): boolean => {
    while (taken === calls.length && asked === null) {
      const received = receiveMessageOnPort(port)
      if (received === undefined) return false
      receive(received.message as ToThread)
    }
    return taken < calls.length
  }
  /** Calls that arrive during the transaction join it, which saves a sync. */
  const transact = (): void => {
    const names: OperationName[] = []
    const take = (): Call | undefined => {
      if (names.length === MOST_IN_A_TRANSACTION || !hasMore()) return undefined
      const [name, packed] = calls[taken++]!
      names.push(name)
      return [name, wireOf(name).unpack(packed)]
    }
    const answers = executor.run(take)
    answer({ answers: answers.map((one, i) => packAnswer(names[i]!, one)) })
    const lost = executor.tidy()
    if (lost !== null) answer({ lost })
  }
  port.on("message", (message: ToThread) => {
    receive(message)
    while (hasMore()) transact()
    if (asked === "finish") answer(executor.finish() ? "finished" : "failed")
    if (asked === "close") {
      executor.close()
      answer("closed")
      port.close()
    }
    asked = null
  })
  answer("open")
} catch (error) {
  answer({ openFailed: toFailure(toPosthornError(error)) })
  port.close()
}

function packAnswer(name: OperationName, answer: Answer): Answer {
  return "value" in answer ? { value: wireOf(name).packAnswer(answer.value) } : answer
}

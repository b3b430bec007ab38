/**
 * The caller's end of a store thread. Calls of one moment go together, and what is there when the thread begins a transaction goes
 * into it: the busier it is, the more calls share a sync, with no timer and nothing to tune.
 */
import { Worker } from "node:worker_threads"
import { PosthornError } from "../../core/errors.ts"
import { EndOfTick } from "../../end-of-tick.ts"
import type { Answer, Call, ExecutorOptions, Failure } from "./executor.ts"
import type { OperationName } from "./operations.ts"
import type { FromThread, ToThread } from "./thread.ts"
import { wireOf } from "./wire.ts"

interface Waiting {
  readonly name: OperationName
  receive(value: unknown): unknown
  resolve(value: unknown): void
  reject(error: Error): void
}

/** Not sent yet. What it says is let go with that: the collector would copy it again and again, until the answer has come. */
interface Unsent {
  readonly call: Call
  readonly waiting: Waiting
}

/** So many calls go at once, so that the thread begins while the others are still made; and so many messages, before it has answered. */
const ENOUGH_TO_SEND = 32
const ENOUGH_MESSAGES = 2

/** Three semi-spaces of 2 MB: nearly everything that a thread makes is garbage at once. */
const YOUNG_SPACE_MB = 6

/** Calls of the same tick of the event loop go together, whichever socket they came from. */
const UNSENT = new EndOfTick<Channel>((channel) => channel.flushUnlessBusy())

export class Channel {
  readonly #worker: Worker
  readonly #onLost: (error: PosthornError) => void
  /** Sent, in the order in which they will be answered. */
  #waiting: Waiting[] = []
  #outbox: Unsent[] = []
  /** Messages since the last answer. */
  #unanswered = 0
  #ended: PosthornError | null = null
  #hasExited = false
  /** Told what the thread has done on the way to its end. */
  #onStep: ((step: "closed" | "finished" | "failed") => void) | null = null

  private constructor(worker: Worker, onLost: (error: PosthornError) => void) {
    this.#worker = worker
    this.#onLost = onLost
  }

  /** Resolves when the thread has opened the file. `onLost` is told when the store can no longer be used. */
  static async open(options: ExecutorOptions, onLost: (error: PosthornError) => void): Promise<Channel> {
    const file = import.meta.url.endsWith(".ts") ? "./thread.ts" : "./thread.js"
    const worker = new Worker(new URL(file, import.meta.url), {
      workerData: options,
      transferList: options.copying === undefined ? [] : [options.copying],
      name: `posthorn-${options.role}`,
      // Options of the program are not for this thread: --input-type would refuse its file, --import would load the program's modules again.
      execArgv: [],
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_SPACE_MB },
    })
    const channel = new Channel(worker, onLost)
    await new Promise<void>((resolve, reject) => {
      worker.once("error", reject)
      worker.once("message", (message: FromThread) => {
        if (typeof message === "object" && "openFailed" in message)
          reject(cannotOpen(options.path, message.openFailed))
        else resolve()
      })
    })
    worker.removeAllListeners("error")
    worker.on("error", (cause) => setImmediate(() => channel.#lose(lost(cause))))
    worker.on("exit", () => {
      channel.#hasExited = true
      setImmediate(() => channel.#lose(lost(undefined)))
    })
    // Not at once: Node hands over one message after the other for as long as there are any, and while each answer leads to calls that are
    // answered before it is worked through there always are. Answers of receivers waited for 100 ms meanwhile, in up to 2000 connections.
    worker.on("message", (message: FromThread) => setImmediate(() => channel.#receive(message)))
    return channel
  }

  /** `receive` is given the answer as it comes in, before those of later calls, and makes the result of it. */
  call<T = unknown>(
    name: OperationName,
    args: readonly unknown[],
    receive: (value: unknown) => T = asItIs,
  ): Promise<T> {
    if (this.#ended !== null) return Promise.reject(this.#ended)
    return new Promise<unknown>((resolve, reject) => {
      const waiting = { name, receive, resolve, reject }
      this.#outbox.push({ call: [name, wireOf(name).pack(args)], waiting })
      if (this.#outbox.length >= ENOUGH_TO_SEND) this.#flush()
      else UNSENT.add(this)
    }) as Promise<T>
  }

  /** Each message has a price of its own: while the thread has enough to do, calls of several ticks go together. */
  flushUnlessBusy(): void {
    if (this.#unanswered < ENOUGH_MESSAGES) this.#flush()
  }

  #flush(): void {
    const batch = this.#outbox
    this.#outbox = []
    if (batch.length > 0) this.#send(batch)
  }

  #send(batch: readonly Unsent[]): void {
    try {
      this.#post({ calls: batch.map(({ call }) => call) })
      this.#unanswered++
      for (const { waiting } of batch) this.#waiting.push(waiting)
    } catch (cause) {
      // An argument that cannot be copied to the thread, such as a function: only the call that has it is refused.
      if (batch.length > 1) for (const one of batch) this.#send([one])
      else
        batch[0]?.waiting.reject(
          new PosthornError("invalid_input", "an argument is not plain data", { cause }),
        )
    }
  }

  #post(message: ToThread): void {
    this.#worker.postMessage(message)
  }

  #receive(message: FromThread): void {
    if (message === "closed" || message === "finished" || message === "failed") return this.#onStep?.(message)
    if (typeof message === "object" && "lost" in message) return this.#lose(toError(message.lost))
    // What was refused when the store was lost may be answered all the same.
    if (typeof message !== "object" || !("answers" in message)) return
    const answered = this.#waiting.splice(0, message.answers.length)
    this.#unanswered = 0
    this.#flush()
    for (const [i, one] of answered.entries()) this.#answer(one, message.answers[i]!)
  }

  #answer(waiting: Waiting, answer: Answer): void {
    if ("value" in answer) {
      const value = wireOf(waiting.name).unpackAnswer(answer.value)
      return waiting.resolve(waiting.receive(value))
    }
    const error = toError(answer.failure)
    waiting.reject(error)
    if (error.code === "store_failed") this.#lose(error)
  }

  #lose(error: PosthornError): void {
    if (this.#ended !== null) return
    void this.end(error)
    this.#onLost(error)
  }

  /**
   * After every call that was made before. `beforeLast` is called when they are done and the file has not failed, before the connection
   * closes. Resolves with whether that was so.
   */
  async close(beforeLast: () => void = () => {}): Promise<boolean> {
    if (this.#ended !== null) {
      // The thread may still be ending: the log's guard must not close before its connection.
      await this.#worker.terminate()
      return false
    }
    this.#ended = new PosthornError("closed", "Posthorn is closed")
    this.#flush()
    const isSound = (await this.#step("finish")) === "finished"
    if (isSound) beforeLast()
    await this.#step("close")
    await this.end(this.#ended)
    return isSound
  }

  /** Resolves with what the thread says to it, or when the thread has ended. */
  #step(step: "finish" | "close"): Promise<"closed" | "finished" | "failed" | "exited"> {
    return new Promise((resolve) => {
      this.#onStep = resolve
      this.#post(step)
      // Behind the answers that came before it.
      const exited = () => setImmediate(resolve, "exited")
      if (this.#hasExited) exited()
      else this.#worker.once("exit", exited)
    })
  }

  /** Ends the thread as a crash would. What it has not answered is rejected with the error. */
  async end(error: PosthornError): Promise<void> {
    this.#ended ??= error
    for (const { reject } of [...this.#waiting, ...this.#outbox.map(({ waiting }) => waiting)]) reject(error)
    this.#waiting = []
    this.#outbox = []
    await this.#worker.terminate()
  }
}

const asItIs = <T>(value: unknown) => value as T

function toError({ code, message, field, cause }: Failure): PosthornError {
  return new PosthornError(code, message, { field, cause })
}

/** What went wrong at the start, with the file that it went wrong with. */
function cannotOpen(path: string, failure: Failure): PosthornError {
  const { code, cause } = failure
  if (code !== "store_failed" && code !== "store_unavailable") return toError(failure)
  return new PosthornError(
    code,
    `${path} cannot be opened as a Posthorn database: ${cause ?? failure.message}`,
    { cause },
  )
}

function lost(cause: unknown): PosthornError {
  return new PosthornError(
    "store_failed",
    "the store's thread ended unexpectedly: stopping; a restart recovers from the file",
    { cause },
  )
}

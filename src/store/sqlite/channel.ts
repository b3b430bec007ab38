/**
 * The caller's end of a store thread. Calls of one tick are sent as one message, and the thread takes all messages that have arrived into
 * its transaction: the busier it is, the more calls share a sync, without a timer.
 */
import { Worker } from "node:worker_threads"
import { PosthornError } from "../../core/errors.ts"
import { EndOfTick } from "../../end-of-tick.ts"
import { type Instruments, NO_INSTRUMENTS, recordStoreError } from "../../observe/instruments.ts"
import type { Answer, Call, ExecutorOptions, Failure } from "./executor.ts"
import type { OperationName } from "./operations.ts"
import type { FromThread, ToThread } from "./thread.ts"
import { wireOf } from "./wire.ts"

interface Waiting {
  readonly name: OperationName
  /** By the clock of the instruments. */
  readonly madeAt: number
  receive(value: unknown): unknown
  resolve(value: unknown): void
  reject(error: Error): void
}

/** Its arguments are dropped when it is sent: the garbage collector would copy them until the answer arrives. */
interface Unsent {
  readonly call: Call
  readonly waiting: Waiting
}

/** Calls that are sent before the end of the tick, so that the thread can begin; and messages in flight. */
const ENOUGH_TO_SEND = 32
const ENOUGH_MESSAGES = 2

/** Three semi-spaces of 2 MB: nearly all objects of a thread are short-lived. */
const YOUNG_SPACE_MB = 6

const UNSENT = new EndOfTick<Channel>((channel) => channel.flushUnlessBusy())

export class Channel {
  readonly #worker: Worker
  readonly #onLost: (error: PosthornError) => void
  readonly #instruments: Instruments
  /** Calls in flight, in the order of their answers. */
  #waiting: Waiting[] = []
  #outbox: Unsent[] = []
  /** Messages sent since the last answer. */
  #unanswered = 0
  #ended: PosthornError | null = null
  #hasExited = false
  /** Called for each step of the thread's end. */
  #onStep: ((step: "closed" | "finished" | "failed") => void) | null = null

  private constructor(worker: Worker, onLost: (error: PosthornError) => void, instruments: Instruments) {
    this.#worker = worker
    this.#onLost = onLost
    this.#instruments = instruments
  }

  /** Resolves when the thread has opened the file. `onLost` is called when the store can no longer be used. */
  static async open(
    options: ExecutorOptions,
    onLost: (error: PosthornError) => void,
    instruments = NO_INSTRUMENTS,
  ): Promise<Channel> {
    const file = import.meta.url.endsWith(".ts") ? "./thread.ts" : "./thread.js"
    const worker = new Worker(new URL(file, import.meta.url), {
      workerData: options,
      transferList: options.copying === undefined ? [] : [options.copying],
      name: `posthorn-${options.role}`,
      // Don't inherit options of the program: --input-type would refuse this file, --import would load the program's modules again.
      execArgv: [],
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_SPACE_MB },
    })
    const channel = new Channel(worker, onLost, instruments)
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
    // Not directly: Node delivers messages as long as there are any, and each answer leads to calls that are answered before its work is
    // done. Sockets waited for 100 ms meanwhile, in up to 2000 connections.
    worker.on("message", (message: FromThread) => setImmediate(() => channel.#receive(message)))
    return channel
  }

  /** `receive` turns the answer into the result. It runs before the answers of later calls are received. */
  call<T = unknown>(
    name: OperationName,
    args: readonly unknown[],
    receive: (value: unknown) => T = asItIs,
  ): Promise<T> {
    if (this.#ended !== null) return Promise.reject(this.#ended)
    return new Promise<unknown>((resolve, reject) => {
      const waiting = { name, madeAt: this.#instruments.now(), receive, resolve, reject }
      this.#outbox.push({ call: [name, wireOf(name).pack(args)], waiting })
      if (this.#outbox.length >= ENOUGH_TO_SEND) this.#flush()
      else UNSENT.add(this)
    }) as Promise<T>
  }

  /** A message has a fixed cost: while the thread is busy, calls of several ticks are sent together. */
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
      // An argument such as a function cannot be copied to the thread: only its call is refused.
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
    // Calls that were rejected when the store was lost may still be answered.
    if (typeof message !== "object" || !("answers" in message)) return
    const answered = this.#waiting.splice(0, message.answers.length)
    this.#unanswered = 0
    this.#flush()
    if (answered.length > 0 && answered[0]!.madeAt > 0) this.#measure(answered)
    for (const [i, one] of answered.entries()) this.#answer(one, message.answers[i]!)
  }

  /** The answers of one message are those of one transaction. */
  #measure(answered: readonly Waiting[]): void {
    const settles = answered.filter(({ name }) => name === "settle")
    const [first] = settles
    if (first !== undefined)
      this.#instruments.outcomesSettled(settles.length, this.#instruments.now() - first.madeAt)
  }

  #answer(waiting: Waiting, answer: Answer): void {
    if ("value" in answer) {
      const value = wireOf(waiting.name).unpackAnswer(answer.value)
      return waiting.resolve(waiting.receive(value))
    }
    const error = toError(answer.failure)
    waiting.reject(error)
    recordStoreError(this.#instruments, error)
    if (error.code === "store_failed") this.#lose(error)
  }

  #lose(error: PosthornError): void {
    if (this.#ended !== null) return
    void this.end(error)
    this.#onLost(error)
  }

  /**
   * Waits for all earlier calls. If the file has not failed then, calls `beforeLast` before the connection closes. Resolves with whether the
   * file is sound.
   */
  async close(beforeLast: () => void = () => {}): Promise<boolean> {
    if (this.#ended !== null) {
      // The thread may still be ending: the log guard must not close before its connection.
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

  /** Resolves with the thread's answer, or when the thread has ended. */
  #step(step: "finish" | "close"): Promise<"closed" | "finished" | "failed" | "exited"> {
    return new Promise((resolve) => {
      this.#onStep = resolve
      this.#post(step)
      // After the answers that arrived before.
      const exited = () => setImmediate(resolve, "exited")
      if (this.#hasExited) exited()
      else this.#worker.once("exit", exited)
    })
  }

  /** Ends the thread as a crash would. Rejects unanswered calls with the error. */
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

/** Runs batches of operations on one connection: one transaction, one sync, one answer. */
import { getRandomValues } from "node:crypto"
import type { MessagePort } from "node:worker_threads"
import { describe, type ErrorCode, type PosthornError } from "../../core/errors.ts"
import { createIds } from "../../core/ids.ts"
import { Checkpoints } from "./checkpoints.ts"
import { Connection } from "./connection.ts"
import { Context } from "./context.ts"
import { Copier } from "./copier.ts"
import { isFileTrouble, toPosthornError } from "./errors.ts"
import { hasFailedSync, markFailedSync, recoverFromFailedSync } from "./failed-sync.ts"
import { migrate } from "./migrate.ts"
import { refuseMoved } from "./moved.ts"
import { OPERATIONS, type OperationName } from "./operations.ts"
import { type Ownership, takeOwnership } from "./owner.ts"

export interface ExecutorOptions {
  readonly path: string
  /** `owner` delivers and is alone; `guest` reads and writes beside it; `reader` only reads. */
  readonly role: "owner" | "guest" | "reader"
  /** Port between the writer and the reader that copies its log. */
  readonly copying?: MessagePort
  /** Opens a file that was moved to PostgreSQL all the same. */
  readonly openMoved?: boolean
  /** Length of the log from which on it is copied. */
  readonly longLogPages?: number | undefined
}

export type Call = readonly [name: OperationName, args: readonly unknown[]]

/** Errors cross the threads as data: the copy has no class. */
export interface Failure {
  readonly code: ErrorCode
  readonly message: string
  readonly field: string | undefined
  readonly cause: string | undefined
}
export type Answer =
  | { readonly value: unknown }
  | { readonly failure: Failure; readonly fileTrouble: boolean }

/** Transactions with a savepoint for each call, after a call that failed. */
const WARY_TRANSACTIONS = 100

export class Executor {
  readonly #options: ExecutorOptions
  /** Only a reader has one. */
  readonly #copier: Copier | null
  #wary = 0
  /** Set when the file has failed: every call is refused. */
  #lost: Failure | null = null
  #open: {
    readonly connection: Connection
    readonly context: Context
    readonly ownership: Ownership | null
    readonly checkpoints: Checkpoints | null
  } | null = null

  constructor(options: ExecutorOptions) {
    this.#options = options
    const { role, path, copying } = options
    this.#copier = role === "reader" && copying !== undefined ? new Copier(path, copying) : null
    // A reader opens the file with its first call: by then the writer has created it.
    if (role !== "reader") this.#ready()
  }

  #ready() {
    this.#open ??= openFile(this.#options)
    return this.#open
  }

  /** One transaction with the calls that `take` returns, until it returns none. */
  run(take: () => Call | undefined): Answer[] {
    const calls: Call[] = []
    const next = () => {
      const call = take()
      if (call !== undefined) calls.push(call)
      return call
    }
    try {
      if (this.#lost !== null) throw this.#lost
      const { connection, context } = this.#ready()
      return this.#options.role === "reader"
        ? each(next, (call) => attempt(context, call))
        : this.#transact(connection, context, calls, next)
    } catch (error) {
      const failure = isFailure(error) ? error : toFailure(toPosthornError(error))
      // The system reports a failed sync once: a later sync that succeeds does not mean that the data is on the disk.
      if (failure.code === "store_failed" && this.#lost === null) this.#lose(failure)
      // The remaining calls would fail in the same way.
      while (next() !== undefined) {}
      return calls.map(() => ({ failure, fileTrouble: true }))
    }
  }

  /** Runs after the answers were sent. Returns a failure if the file has failed. */
  tidy(): Failure | null {
    if (this.#lost !== null) return null
    try {
      this.#open?.checkpoints?.committed()
      return null
    } catch (error) {
      return this.#lose(toFailure(toPosthornError(error)))
    }
  }

  #lose(failure: Failure): Failure {
    this.#lost = failure
    markFailedSync(this.#options.path)
    return failure
  }

  /**
   * A bad call fails alone; an error of the file fails all calls. Nothing is half-written. A savepoint for each call takes a fifth of this
   * thread's time, so they are used only for some time after a failure, beginning with a second run of the transaction that failed.
   */
  #transact(
    connection: Connection,
    context: Context,
    calls: readonly Call[],
    next: () => Call | undefined,
  ): Answer[] {
    const alone = (call: Call) => attemptAlone(connection, context, call)
    if (this.#wary > 0) {
      this.#wary--
      return inTransaction(connection, context, () => each(next, alone))
    }
    const answers = inTransaction(connection, context, () => attemptAll(context, next))
    if (answers !== null) return answers
    this.#wary = WARY_TRANSACTIONS
    return inTransaction(connection, context, () => calls.map(alone))
  }

  /** Whether the file is sound after the last call. */
  finish(): boolean {
    this.tidy()
    if (this.#lost !== null || this.#copier?.hasFailed === true) return false
    return !hasFailedSync(this.#options.path)
  }

  close(): void {
    this.#copier?.close()
    this.#open?.connection.close()
    this.#open?.ownership?.release()
  }
}

function openFile({ path, role, copying, openMoved = false, longLogPages }: ExecutorOptions) {
  if (role !== "reader") recoverFromFailedSync(path)
  const connection = new Connection(path, { readOnly: role === "reader" })
  try {
    if (role !== "reader") migrate(connection)
    const onOthers = () => {
      if (!openMoved) refuseMoved(path, connection)
    }
    // Before the first check: a move that finishes later shows as a commit of another connection.
    const ids = createIds((into) => getRandomValues(into))
    const context = new Context(connection, ids, onOthers)
    if (role !== "reader") onOthers()
    const ownership = role === "owner" ? takeOwnership(path, connection) : null
    if (role === "owner") connection.rewriteLog()
    if (role !== "reader") connection.syncItself()
    return {
      connection,
      ownership,
      checkpoints:
        role === "reader" || copying === undefined
          ? null
          : new Checkpoints(connection, copying, longLogPages),
      context,
    }
  } catch (error) {
    if (toPosthornError(error).code === "store_failed") markFailedSync(path)
    connection.close()
    throw error
  }
}

function each(next: () => Call | undefined, answer: (call: Call) => Answer): Answer[] {
  const answers: Answer[] = []
  for (let call = next(); call !== undefined; call = next()) answers.push(answer(call))
  return answers
}

/** Null when a call has failed: all calls have to run again. */
function attemptAll(context: Context, next: () => Call | undefined): Answer[] | null {
  const answers: Answer[] = []
  const isDone = (answer: Answer): boolean => {
    if ("failure" in answer && answer.fileTrouble) throw answer.failure
    return "value" in answer
  }
  for (let call = next(); call !== undefined; call = next()) {
    const answer = attempt(context, call)
    if (!isDone(answer)) return null
    answers.push(answer)
  }
  return isDone(answerOf(() => context.flush())) ? answers : null
}

/** Commits, unless `work` returns null. */
function inTransaction<A extends Answer[] | null>(
  connection: Connection,
  context: Context,
  work: () => A,
): A {
  try {
    connection.sql("BEGIN IMMEDIATE").run()
    context.noticeOthers()
    const answers = work()
    if (answers === null) {
      context.rolledBack()
      rollBack(connection)
    } else connection.commit()
    return answers
  } catch (error) {
    context.rolledBack()
    rollBack(connection)
    throw error
  }
}

function attemptAlone(connection: Connection, context: Context, call: Call): Answer {
  const written = connection.totalChanges()
  connection.sql("SAVEPOINT call").run()
  const answer = answerOf(() => {
    const value = perform(context, call)
    context.flush()
    return value
  })
  if ("failure" in answer) {
    if (answer.fileTrouble || !connection.db.isTransaction) throw answer.failure
    // Most refused calls have written nothing: then the context is still valid.
    if (connection.totalChanges() !== written || context.isGathering) context.rolledBack()
    connection.sql("ROLLBACK TO call").run()
  }
  connection.sql("RELEASE call").run()
  return answer
}

function attempt(context: Context, call: Call): Answer {
  return answerOf(() => perform(context, call))
}

/** These batch their rows with those of other calls, and read no batched rows. */
const GATHERING: ReadonlySet<OperationName> = new Set(["accept", "settle"])

function perform(context: Context, [name, args]: Call): unknown {
  if (!GATHERING.has(name)) context.flush()
  const operation = OPERATIONS[name] as (context: Context, ...args: readonly unknown[]) => unknown
  return operation(context, ...args)
}

function answerOf(work: () => unknown): Answer {
  try {
    return { value: work() }
  } catch (error) {
    return { failure: toFailure(toPosthornError(error)), fileTrouble: isFileTrouble(error) }
  }
}

function rollBack({ db }: Connection): void {
  try {
    if (db.isTransaction) db.exec("ROLLBACK")
  } catch {
    // Report the first failure. A transaction that cannot be rolled back ends with the connection.
  }
}

function isFailure(error: unknown): error is Failure {
  return !(error instanceof Error)
}

export function toFailure(error: PosthornError): Failure {
  return {
    code: error.code,
    message: error.message,
    field: error.field,
    cause: error.cause === undefined ? undefined : describe(error.cause),
  }
}

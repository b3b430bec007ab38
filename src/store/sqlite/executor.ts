/** Runs batches of operations on one connection: a batch is one transaction, one sync, one answer. */
import { getRandomValues } from "node:crypto"
import { describe, type ErrorCode, type PosthornError } from "../../core/errors.ts"
import { createIds } from "../../core/ids.ts"
import { Connection } from "./connection.ts"
import { Context } from "./context.ts"
import { toPosthornError } from "./errors.ts"
import { OPERATIONS, type OperationName } from "./operations.ts"
import { type Ownership, takeOwnership } from "./owner.ts"
import { migrate } from "./schema.ts"

export interface ExecutorOptions {
  readonly path: string
  /** `owner` delivers and is alone; `guest` reads and writes beside it; `reader` only reads. */
  readonly role: "owner" | "guest" | "reader"
}

export type Call = readonly [name: OperationName, args: readonly unknown[]]

/** Errors cross the thread as data: a class does not survive the copy. */
export interface Failure {
  readonly code: ErrorCode
  readonly message: string
  readonly field: string | undefined
  readonly cause: string | undefined
}
export type Answer = { readonly value: unknown } | { readonly failure: Failure }

export class Executor {
  readonly #connection: Connection
  readonly #context: Context
  readonly #ownership: Ownership | null
  readonly #reads: boolean

  constructor({ path, role }: ExecutorOptions) {
    this.#reads = role === "reader"
    this.#connection = new Connection(path, { readOnly: this.#reads })
    try {
      if (!this.#reads) migrate(this.#connection)
      this.#ownership = role === "owner" ? takeOwnership(path, this.#connection) : null
    } catch (error) {
      this.#connection.close()
      throw error
    }
    this.#context = new Context(
      this.#connection,
      createIds((into) => getRandomValues(into)),
    )
  }

  run(calls: readonly Call[]): Answer[] {
    return this.#reads ? calls.map((call) => this.#attempt(call)) : this.#transact(calls)
  }

  /** Every call has a savepoint: a bad one fails alone. Trouble with the file fails them all, and nothing is half-written. */
  #transact(calls: readonly Call[]): Answer[] {
    const { db } = this.#connection
    try {
      this.#connection.sql("BEGIN IMMEDIATE").run()
      this.#context.noticeOthers()
      const answers: Answer[] = []
      for (const call of calls) {
        this.#connection.sql("SAVEPOINT call").run()
        const answer = this.#attempt(call)
        if ("failure" in answer) {
          if (isTrouble(answer.failure) || !db.isTransaction) throw answer.failure
          this.#context.forget()
          this.#connection.sql("ROLLBACK TO call").run()
        }
        this.#connection.sql("RELEASE call").run()
        answers.push(answer)
      }
      this.#connection.sql("COMMIT").run()
      return answers
    } catch (error) {
      this.#context.forget()
      const failure = isFailure(error) ? error : toFailure(toPosthornError(error))
      this.#rollBack()
      return calls.map(() => ({ failure }))
    }
  }

  #attempt([name, args]: Call): Answer {
    try {
      const operation = OPERATIONS[name] as (context: Context, ...args: readonly unknown[]) => unknown
      return { value: operation(this.#context, ...args) }
    } catch (error) {
      return { failure: toFailure(toPosthornError(error)) }
    }
  }

  #rollBack(): void {
    try {
      if (this.#connection.db.isTransaction) this.#connection.db.exec("ROLLBACK")
    } catch {
      // The failure that led here is the one to report; a transaction that cannot be rolled back ends with the connection.
    }
  }

  close(): void {
    this.#connection.close()
    this.#ownership?.release()
  }
}

function isTrouble(failure: Failure): boolean {
  return failure.code.startsWith("store_")
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

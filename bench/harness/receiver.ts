/** Controls the receiver's process: tells it what to expect, waits for it, and reads its books. */
import { Program } from "../../test/support/process.ts"
import type { Question } from "../children/receiver.ts"
import { sharedNow } from "./clock.ts"
import { mistakeIn, type Tally } from "./ledger.ts"
import { inTime, VoidRun } from "./void.ts"

type Answer =
  | { readonly kind: "listening"; readonly port: number }
  | { readonly kind: "ready"; readonly at: number }
  | { readonly kind: "reached" }
  | ({ readonly kind: "books" } & Books)

/** The share of a core that the receiver used. Near 1, the receiver limited the measurement. */
interface Books {
  readonly tally: Tally
  readonly busyShare: number
}

export interface Expected {
  /** The number of the first message. */
  readonly from: number
  /** Resolves with correct books when all messages have come; otherwise throws `VoidRun`. */
  complete(): Promise<Books>
  /** The books as they are now. */
  books(): Promise<Books>
}

export interface ExpectOptions {
  /** Numbers that were reserved before; by default new ones. */
  readonly from?: number
  /** The number of messages that arrive; by default all. */
  readonly arrivals?: number
  /** Stores arrival times. */
  readonly timed?: boolean
}

const BUSIEST = 0.9
/** The receiver reads its clock between our request and its response. */
const MOST_CLOCK_ERROR_MS = 0.5

export class Receiver {
  readonly #program: Program
  readonly #origin: string
  #next = 0
  #busiest = 0
  #waiting = new Map<Answer["kind"], (answer: Answer) => void>()

  private constructor(program: Program, port: number) {
    this.#program = program
    this.#origin = `http://127.0.0.1:${port}`
    program.process.on("message", (answer: Answer) => this.#waiting.get(answer.kind)?.(answer))
  }

  static async start(): Promise<Receiver> {
    const program = Program.start(new URL("../children/receiver.ts", import.meta.url), [], { talks: true })
    const { port } = await new Promise<Extract<Answer, { kind: "listening" }>>((resolve, reject) => {
      program.process.once("message", resolve as (answer: unknown) => void)
      void program.ended.then(() => reject(new Error(`the receiver did not start:\n${program.stderr}`)))
    })
    return new Receiver(program, port)
  }

  get origin(): string {
    return this.#origin
  }

  /** The largest share of a core in a round. */
  get busiest(): number {
    return this.#busiest
  }

  async expect(count: number, options: ExpectOptions = {}): Promise<Expected> {
    const { from = this.#next, arrivals = count, timed = false } = options
    this.#next = Math.max(this.#next, from + count)
    const askedAt = sharedNow()
    const reached = this.#hear("reached")
    const question = { kind: "expect", expectation: { from, to: from + count, arrivals, timed } } as const
    const { at } = await this.#ask(question, "ready")
    if (at < askedAt - MOST_CLOCK_ERROR_MS || at > sharedNow() + MOST_CLOCK_ERROR_MS)
      throw new VoidRun("the clocks of two processes differ")
    const books = () => this.#ask({ kind: "ask" }, "books")
    return {
      from,
      books,
      complete: async () => {
        await inTime(reached, async () => mistakeIn((await books()).tally) ?? "nothing is missing")
        return this.#check(await books())
      },
    }
  }

  /** After all senders have ended: throws `VoidRun` if a request came that is in no books. */
  async checkNothingCame(): Promise<void> {
    const { books } = await this.expect(0)
    checkTally((await books()).tally)
  }

  #check(books: Books): Books {
    checkTally(books.tally)
    if (books.busyShare > BUSIEST) throw new VoidRun("the receiver was the limit: it used all of a core")
    this.#busiest = Math.max(this.#busiest, books.busyShare)
    return books
  }

  async close(): Promise<void> {
    await this.#program.kill()
  }

  #ask<K extends Answer["kind"]>(question: Question, kind: K): Promise<Extract<Answer, { kind: K }>> {
    const answer = this.#hear(kind)
    this.#program.process.send(question)
    return answer
  }

  #hear<K extends Answer["kind"]>(kind: K): Promise<Extract<Answer, { kind: K }>> {
    return new Promise((resolve) => this.#waiting.set(kind, resolve as (answer: Answer) => void))
  }
}

export function checkTally(tally: Tally): void {
  const mistake = mistakeIn(tally)
  if (mistake !== null) throw new VoidRun(`the ledger does not add up: ${mistake}`)
}

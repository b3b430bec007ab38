/** Worker processes that a test starts, freezes and kills, and what they said about their work. */
import { onTestFinished } from "vitest"
import type { PosthornOptions } from "../../src/options.ts"
import { programFile } from "./bundled.ts"
import { type Ending, Program } from "./process.ts"

export interface WorkerOptions extends Omit<PosthornOptions, "logger" | "onFatal"> {
  /** Shorter than the real one where a test waits for it to run out. */
  readonly leaseMs?: number
  /** Says what it takes and what it settles. */
  readonly tells?: boolean
}

/** Orders for a worker, over its channel. */
export type WorkerOrder =
  | { readonly kind: "block"; readonly ms: number }
  | { readonly kind: "count"; readonly number: number }

export type SettleWord = "applied" | "superseded" | "stale"

/** A line that a worker said. */
export type Told =
  | { readonly word: "took"; readonly deliveryId: string; readonly token: number }
  | { readonly word: "settles"; readonly attemptId: string; readonly token: number }
  | { readonly word: SettleWord; readonly deliveryId: string }

const CHILD = programFile("worker-child")

export class WorkerProcess {
  readonly program: Program
  readonly told: Told[] = []
  #counts = 0

  private constructor(options: WorkerOptions) {
    this.program = Program.start(CHILD, [JSON.stringify(options)], { talks: true }, (line) =>
      this.#hear(line),
    )
  }

  /** Resolves when it delivers. */
  static async start(options: WorkerOptions): Promise<WorkerProcess> {
    const worker = new WorkerProcess(options)
    onTestFinished(async () => void (await worker.kill()))
    await worker.program.line(/^ready/)
    return worker
  }

  get pid(): number {
    return this.program.process.pid!
  }

  get hasEnded(): boolean {
    return this.program.process.exitCode !== null || this.program.process.signalCode !== null
  }

  kill(): Promise<Ending> {
    return this.program.kill()
  }

  /** As if the machine had stopped: it does nothing, and its connections stay open. */
  freeze(): void {
    this.program.process.kill("SIGSTOP")
  }

  thaw(): void {
    this.program.process.kill("SIGCONT")
  }

  /** Holds up its event loop for so long; resolves when it is held up. */
  async block(ms: number): Promise<void> {
    this.#order({ kind: "block", ms })
    await this.program.line(/^blocked/)
  }

  /** How many statements it has sent to PostgreSQL. */
  async statements(): Promise<number> {
    const number = ++this.#counts
    this.#order({ kind: "count", number })
    return Number((await this.program.line(new RegExp(`^statements ${number} `))).split(" ")[2])
  }

  #order(order: WorkerOrder): void {
    this.program.process.send(order)
  }

  /** Asks it to end by itself. */
  async close(): Promise<Ending> {
    this.program.process.kill("SIGTERM")
    return this.program.ended
  }

  #hear(line: string): void {
    const [word, id, token] = line.split(" ") as [string, string, string]
    if (word === "took") this.told.push({ word, deliveryId: id, token: Number(token) })
    else if (word === "settles") this.told.push({ word, attemptId: id, token: Number(token) })
    else if (word === "applied" || word === "superseded" || word === "stale")
      this.told.push({ word, deliveryId: id })
  }
}

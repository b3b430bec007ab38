/** One store, one receiver, and the many lives of the program that works on them. */
import { cpSync, existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { programFile } from "../support/bundled.ts"
import { type FileGround, type Ground, sqliteGround } from "../support/ground.ts"
import { Program } from "../support/process.ts"
import { Ledger, ORDERED, PLAIN } from "./ledger.ts"
import { checkOutcome, type Summary } from "./oracle-outcome.ts"
import { checkStore } from "./oracle-store.ts"
import type { AcceptedMessage } from "./rows.ts"

const CHILD = programFile("kill-child")
export const SENDERS = 8
/** A program that takes longer than this to deliver what is left has lost sight of something. */
const FINISH_MS = 60_000
/** On a server the next life takes over what the last one had in hand when its lease has run out: soon, so that it comes to that. */
const LEASE_MS = 600

/** Only a program that ends by itself leaves its compiled code for the next to start with: one that has nothing to do is run first. */
let warmUp: Promise<unknown> | null = null

export class Campaign {
  readonly #folder = mkdtempSync(join(tmpdir(), "posthorn-kill-"))
  readonly ground: Ground
  readonly ledger: Ledger
  /** The messages that the program said it accepted, in its order. */
  readonly accepted = new Map<string, AcceptedMessage>()
  readonly refused: string[] = []
  readonly #next: number[] = new Array(SENDERS).fill(0)
  #program: Program | null = null

  private constructor(ledger: Ledger, ground: Ground | undefined) {
    this.ledger = ledger
    this.ground = ground ?? sqliteGround(join(this.#folder, "posthorn.db"))
  }

  /** On a file of its own unless told. */
  static async start(random: () => number, ground?: Ground): Promise<Campaign> {
    warmUp ??= Program.start(CHILD, ["--store", "sqlite::memory:"]).ended
    await warmUp
    return new Campaign(await Ledger.start(random), ground)
  }

  /** Only on SQLite. */
  get file(): string {
    return (this.ground as FileGround).file
  }

  /** Another life: every sender goes on after the last message that it knows to be accepted, until the program is killed. */
  launch(under: readonly string[] = [], args: readonly string[] = []): Program {
    return this.#start(["--next", this.#next.join(), ...args], under)
  }

  #start(args: readonly string[], under: readonly string[] = []): Program {
    const { store, schedule } = this.ground.options
    const where = ["--store", store, ...(schedule === undefined ? [] : ["--schedule", schedule])]
    const endpoints = ["--receiver", this.ledger.url, "--plain", PLAIN.join(), "--ordered", ORDERED.join()]
    this.#program = Program.start(
      CHILD,
      [...where, "--lease", String(LEASE_MS), ...endpoints, ...args],
      { under },
      (line) => this.#hear(line),
    )
    return this.#program
  }

  #hear(line: string): void {
    const [word, sender, n, id] = line.split(" ")
    if (word === "refused") this.refused.push(line)
    if (word !== "accepted") return
    this.accepted.set(id!, { sender: Number(sender), n: Number(n) })
    this.#next[Number(sender)] = Number(n) + 1
  }

  /** The last life: it sends a few more or none, delivers what is left, and ends by itself. */
  async finish(count = 0, under: readonly string[] = []): Promise<void> {
    const refused = this.refused.length
    const program = this.#start(["--next", this.#next.join(), "--count", String(count)], under)
    const deadline = setTimeout(() => program.process.kill("SIGKILL"), FINISH_MS)
    const { code, signal } = await program.ended
    clearTimeout(deadline)
    if (code !== 0) throw new Error(`the last start ended with ${signal ?? code}\n${program.stderr}`)
    if (this.refused.length > refused)
      throw new Error(`the last start refused: ${this.refused.slice(refused)}`)
  }

  /** Checks the data that a crash left behind. Of a file a copy, so that the program's next life recovers the file itself. */
  async checkCrashed(): Promise<void> {
    if (this.ground.kind !== "sqlite") return checkStore(this.ground, this.accepted)
    const copy = join(this.#folder, "copy.db")
    for (const ending of ["", "-wal", "-journal"]) {
      rmSync(copy + ending, { force: true })
      if (existsSync(this.file + ending)) cpSync(this.file + ending, copy + ending)
    }
    if (existsSync(copy)) await checkStore(sqliteGround(copy), this.accepted)
  }

  async checkOutcome(): Promise<Summary> {
    await checkStore(this.ground, this.accepted)
    return checkOutcome(this.ground, this.ledger.entries)
  }

  async close(): Promise<void> {
    await this.#program?.kill()
    await this.ledger.close()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

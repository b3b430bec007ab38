/**
 * Records what the program of the kill tests does to its database while it accepts and delivers, makes the images that a power cut at many
 * moments would have left, opens each, and looks up every message that was acknowledged before. A sync may fail on the way.
 */
import assert from "node:assert/strict"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Campaign } from "../kill/campaign.ts"
import { checkStore } from "../kill/oracle-store.ts"
import { seeded } from "../kill/random.ts"
import type { AcceptedMessage } from "../kill/rows.ts"
import { sqliteGround } from "../support/ground.ts"
import { Disk, type Unsynced } from "./disk.ts"
import { Recorder, type Step, type SyncFailure } from "./trace.ts"

/** How the program ends when its store is lost, see `kill/child.ts`. */
export const ENDS = ["throw", "exit", "close"] as const
export type End = (typeof ENDS)[number]

export interface CrashOptions {
  readonly seed: number
  /** Null kills the program instead. */
  readonly failure: SyncFailure | null
  readonly end: End
  /** How many moments of each life images are made of. */
  readonly moments: number
}

/** Of a log that is copied so often that a second of work has many checkpoints. */
export const LONG_LOG_PAGES = 200
/** The first sender's message; by then the log has begun anew several times. */
const KILLED_AT = 30
/** A program that has not ended by then hangs. */
const DEADLINE_MS = 60_000
/** Where syncs take no time, for the images. */
const MEMORY = "/dev/shm"
const UNSYNCED: readonly Unsynced[] = ["lost", "kept", "torn"]

export async function crash({ seed, failure, end, moments }: CrashOptions): Promise<{ images: number }> {
  const random = seeded(seed)
  const campaign = await Campaign.start(random)
  const recorder = new Recorder()
  const examiner = new Examiner(random, moments)
  try {
    const under = recorder.command(campaign.file, failure ?? undefined)
    const program = campaign.launch(under, ["--long-log", String(LONG_LOG_PAGES), "--lost", end])
    const deadline = setTimeout(() => program.process.kill("SIGKILL"), DEADLINE_MS)
    if (failure === null) {
      await program.line(new RegExp(`^accepted 0 ${KILLED_AT} `))
      program.process.kill("SIGKILL")
    }
    await program.ended
    clearTimeout(deadline)
    const steps = recorder.steps()
    if (failure !== null) checkLogKept(steps, program.stderr)
    await examiner.examine(steps)
    await campaign.checkCrashed()
    await campaign.finish(2, recorder.command(campaign.file))
    await examiner.examine(recorder.steps())
    await campaign.checkOutcome()
    return { images: examiner.images }
  } catch (error) {
    const what =
      failure === null ? "a kill" : `sync ${failure.at} of "${failure.file}" ${failure.how}, ${end}`
    throw new Error(`with seed ${seed}, ${what}: ${(error as Error).message}`, { cause: error })
  } finally {
    examiner.close()
    recorder.close()
    await campaign.close()
  }
}

/** A fault that the seed chooses: every fourth is a kill, the others are failed syncs. */
export function crashAtRandom(seed: number, moments: number): Promise<{ images: number }> {
  const random = seeded(seed)
  const one = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!
  const file = one(["", "-wal"] as const)
  const at = 1 + Math.floor(random() * (file === "" ? 25 : 400))
  const failure = random() < 0.25 ? null : { file, at, how: one(["dropped", "clean"] as const) }
  return crash({ seed, failure, end: one(ENDS), moments })
}

/** Nothing after a failed sync may take away what the log has. */
export function checkLogKept(steps: readonly Step[], stderr: string): void {
  const failed = steps.findIndex(({ op }) => op === "syncFailed")
  assert.notEqual(failed, -1, `the sync that should fail was not reached\n${stderr}`)
  const removed = steps.slice(failed).find((step) => isRemoval(step) || isRestart(step))
  assert.equal(removed, undefined, `the log was removed after a failed sync: ${removed?.op}`)
}

function isRemoval(step: Step): boolean {
  return (step.op === "unlinked" || step.op === "truncated") && step.file === "-wal"
}

/** A log begins anew with its head. */
function isRestart(step: Step): boolean {
  return step.op === "written" && step.file === "-wal" && step.offset === 0
}

/** Goes through a program's lives with the disk beside it. */
class Examiner {
  readonly #folder = mkdtempSync(join(existsSync(MEMORY) ? MEMORY : tmpdir(), "posthorn-crash-"))
  readonly #accepted = new Map<string, AcceptedMessage>()
  readonly #random: () => number
  readonly #moments: number
  readonly #disk: Disk
  images = 0

  constructor(random: () => number, moments: number) {
    this.#random = random
    this.#moments = moments
    this.#disk = new Disk(random)
  }

  async examine(steps: readonly Step[]): Promise<void> {
    const chosen = this.#choose(steps)
    for (const [i, step] of steps.entries()) {
      if (chosen.has(i)) await this.#check(`before step ${i} of ${steps.length}, ${step.op}`)
      this.#disk.apply(step)
      if (step.op === "said") this.#hear(step.text)
    }
    await this.#check("at the end")
  }

  /** Before a step that makes a difference: of those after a failed sync all, of the others some. */
  #choose(steps: readonly Step[]): Set<number> {
    const failed = steps.findIndex(({ op }) => op === "syncFailed")
    const chosen = new Set<number>()
    const weighty = steps.flatMap((step, i) =>
      step.op === "written" && step.file === "-wal" && step.offset > 0 ? [] : [i],
    )
    for (const i of weighty) if (failed !== -1 && i > failed && chosen.size < this.#moments) chosen.add(i)
    for (let n = 0; n < this.#moments; n++) {
      const among = n % 2 === 0 ? weighty : null
      const at = Math.floor(this.#random() * (among?.length ?? steps.length))
      chosen.add(among === null ? at : among[at]!)
    }
    return chosen
  }

  #hear(text: string): void {
    for (const line of text.split("\n")) {
      const [word, sender, n, id] = line.split(" ")
      if (word === "accepted") this.#accepted.set(id!, { sender: Number(sender), n: Number(n) })
    }
  }

  async #check(when: string): Promise<void> {
    for (const unsynced of UNSYNCED) {
      const path = this.#disk.image(join(this.#folder, "image"), unsynced)
      this.images++
      try {
        await checkStore(sqliteGround(path), this.#accepted)
      } catch (error) {
        throw new Error(`power cut ${when}, unsynced writes ${unsynced}: ${(error as Error).message}`, {
          cause: error,
        })
      }
    }
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

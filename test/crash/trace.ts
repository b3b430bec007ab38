/** The file operations of a program on its database, as `recorder.c` recorded them. */
import { execFileSync } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { requireTool } from "../support/tools.ts"

/** As `recorder.c` numbers them. */
export const ENDINGS = ["", "-wal", "-journal"] as const
export type FileEnding = (typeof ENDINGS)[number]

export type Step =
  | { readonly op: "created" | "unlinked" | "synced"; readonly file: FileEnding }
  | { readonly op: "written"; readonly file: FileEnding; readonly offset: number; readonly data: Buffer }
  | { readonly op: "truncated"; readonly file: FileEnding; readonly size: number }
  | { readonly op: "folderSynced" }
  /** Unsynced pages are marked clean. Dropped: the pages of before are read again. */
  | { readonly op: "syncFailed"; readonly file: FileEnding; readonly dropped: boolean }
  | { readonly op: "said"; readonly text: string }

export interface SyncFailure {
  readonly file: "" | "-wal"
  /** At the n-th sync of that file. */
  readonly at: number
  readonly how: "dropped" | "clean"
}

const HEAD_BYTES = 16

export class Recorder {
  readonly #folder = mkdtempSync(join(tmpdir(), "posthorn-recorder-"))
  readonly #library = join(this.#folder, "recorder.so")
  readonly #trace = join(this.#folder, "trace")

  constructor() {
    const source = new URL("./recorder.c", import.meta.url).pathname
    const cc = requireTool("cc", "gcc")
    execFileSync(cc, ["-shared", "-fPIC", "-O1", "-o", this.#library, source, "-ldl", "-lpthread"])
  }

  /** The command that runs a program with its database recorded, and one sync failing if wanted. */
  command(file: string, failure?: SyncFailure): string[] {
    rmSync(this.#trace, { force: true })
    const fail = failure && `${ENDINGS.indexOf(failure.file)} ${failure.at} ${failure.how}`
    return [
      "env",
      `LD_PRELOAD=${this.#library}`,
      `RECORD_TRACE=${this.#trace}`,
      `RECORD_FILE=${file}`,
      ...(fail === undefined ? [] : [`RECORD_FAIL=${fail}`]),
    ]
  }

  /** The operations recorded since `command`. */
  steps(): Step[] {
    if (!existsSync(this.#trace)) return []
    const trace = readFileSync(this.#trace)
    const steps: Step[] = []
    for (let at = 0; at + HEAD_BYTES <= trace.length; ) {
      const length = trace.readUInt32LE(at + 4)
      const op = String.fromCharCode(trace[at]!)
      const hasData = op === "W" || op === "S"
      const data = trace.subarray(at + HEAD_BYTES, at + HEAD_BYTES + (hasData ? length : 0))
      steps.push(stepOf(op, ENDINGS[trace[at + 1]!]!, Number(trace.readBigUInt64LE(at + 8)), data))
      at += HEAD_BYTES + data.length
    }
    return steps
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

function stepOf(op: string, file: FileEnding, offset: number, data: Buffer): Step {
  switch (op) {
    case "C":
      return { op: "created", file }
    case "U":
      return { op: "unlinked", file }
    case "Y":
      return { op: "synced", file }
    case "W":
      return { op: "written", file, offset, data }
    case "T":
      return { op: "truncated", file, size: offset }
    case "D":
      return { op: "folderSynced" }
    case "F":
    case "G":
      return { op: "syncFailed", file, dropped: op === "F" }
    case "S":
      return { op: "said", text: data.toString() }
    default:
      throw new Error(`the recorder wrote "${op}"`)
  }
}

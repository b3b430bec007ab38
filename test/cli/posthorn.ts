/** `posthorn` as it is typed: in a shell, in a folder of its own, with nothing of this machine's settings. */
import { spawn } from "node:child_process"
import { chmodSync, mkdirSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import { fileURLToPath } from "node:url"
import { onTestFinished } from "vitest"
import { programFile } from "../support/bundled.ts"
import { temporaryFolder } from "../support/harness.ts"
import { NO_SCRAPES } from "../support/process.ts"

const MAIN = fileURLToPath(programFile("posthorn"))

export interface Result {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Typing {
  readonly environment?: { readonly [name: string]: string }
  /** Standard input. */
  readonly input?: string
}

/** A folder to type in. */
export class Desk {
  readonly folder: string
  readonly #environment: { readonly [name: string]: string | undefined }

  constructor(environment: { readonly [name: string]: string } = {}, folder = temporaryFolder()) {
    this.folder = folder
    const inherited = Object.entries(process.env).filter(([name]) => !/^(POSTHORN_|PORT$)/.test(name))
    this.#environment = {
      ...NO_SCRAPES,
      ...Object.fromEntries(inherited),
      NODE_COMPILE_CACHE: join(tmpdir(), "node-compile-cache"),
      PATH: [this.#commands(), process.env.PATH].join(delimiter),
      ...environment,
    }
  }

  /** Its arguments one by one: no shell reads them. */
  posthorn(args: readonly string[], typing: Typing = {}): Promise<Result> {
    return this.#run(process.execPath, [MAIN, ...args], typing)
  }

  /** A line as somebody pastes it. */
  type(line: string, typing: Typing = {}): Promise<Result> {
    return this.#run("bash", ["-c", line], typing)
  }

  write(name: string, content: string): void {
    writeFileSync(join(this.folder, name), content)
  }

  #commands(): string {
    const folder = join(this.folder, ".commands")
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, "posthorn"), `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`)
    chmodSync(join(folder, "posthorn"), 0o755)
    return folder
  }

  #run(command: string, args: readonly string[], { environment = {}, input = "" }: Typing): Promise<Result> {
    const child = spawn(command, args, {
      cwd: this.folder,
      env: { ...this.#environment, ...environment },
      stdio: "pipe",
    })
    onTestFinished(() => void child.kill("SIGKILL"))
    const texts = { stdout: "", stderr: "" }
    for (const stream of ["stdout", "stderr"] as const)
      child[stream].setEncoding("utf8").on("data", (text: string) => {
        texts[stream] += text
      })
    // A program that does not read its input may close it.
    child.stdin.on("error", () => {}).end(input)
    return new Promise((resolve) => child.on("close", (code) => resolve({ code, ...texts })))
  }
}

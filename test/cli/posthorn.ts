/** `posthorn` as it is typed: in a shell, in a folder of its own, with nothing of this machine's settings. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process"
import { chmodSync, mkdirSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import { fileURLToPath } from "node:url"
import { onTestFinished } from "vitest"
import { programFile } from "../support/bundled.ts"
import { temporaryFolder } from "../support/harness.ts"
import { NO_SCRAPES } from "../support/process.ts"
import { type Size, TmuxScreen } from "./tmux.ts"

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

  /** Goes on until it is stopped. */
  start(args: readonly string[], environment: Typing["environment"] = {}): Started {
    return new Started(this.#spawn(process.execPath, [MAIN, ...args], environment))
  }

  /** In a terminal of this size. */
  onScreen(args: readonly string[], size: Size = { columns: 80, rows: 24 }): TmuxScreen {
    return new TmuxScreen([process.execPath, MAIN, ...args], this.folder, this.#environment, size)
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
    const child = this.#spawn(command, args, environment)
    // A program that does not read its input may close it.
    child.stdin.on("error", () => {}).end(input)
    return new Started(child).ended
  }

  #spawn(command: string, args: readonly string[], environment: Typing["environment"]) {
    const child = spawn(command, args, {
      cwd: this.folder,
      env: { ...this.#environment, ...environment },
      stdio: "pipe",
    })
    onTestFinished(() => void child.kill("SIGKILL"))
    return child
  }
}

/** A program that runs, and what it has written so far. */
export class Started {
  readonly ended: Promise<Result>
  readonly #child: ChildProcessWithoutNullStreams
  readonly #texts = { stdout: "", stderr: "" }
  readonly #watchers = new Set<() => void>()

  constructor(child: ChildProcessWithoutNullStreams) {
    this.#child = child
    for (const stream of ["stdout", "stderr"] as const)
      child[stream].setEncoding("utf8").on("data", (text: string) => {
        this.#texts[stream] += text
        for (const watcher of this.#watchers) watcher()
      })
    this.ended = new Promise((resolve) => child.on("close", (code) => resolve({ code, ...this.#texts })))
  }

  get lines(): string[] {
    return this.#texts.stdout.split("\n").slice(0, -1)
  }

  /** Resolves when it has written a line like this. */
  wrote(line: RegExp): Promise<void> {
    return this.#until(() => this.lines.some((one) => line.test(one)))
  }

  /** Resolves when it has said this on standard error. */
  said(text: string): Promise<void> {
    return this.#until(() => this.#texts.stderr.includes(text))
  }

  interrupt(): void {
    this.#child.kill("SIGINT")
  }

  terminate(): void {
    this.#child.kill("SIGTERM")
  }

  /** Ends it as a crash does. */
  kill(): Promise<Result> {
    this.#child.kill("SIGKILL")
    return this.ended
  }

  /** As `head` does when it has read enough. */
  closeOutput(): void {
    this.#child.stdout.destroy()
  }

  /** Rejects with what was written when the program ends before that. */
  #until(isDone: () => boolean): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const check = () => isDone() && resolve()
    this.#watchers.add(check)
    void this.ended.then((result) => reject(new Error(`it ended: ${JSON.stringify(result)}`)))
    check()
    return promise.finally(() => this.#watchers.delete(check))
  }
}

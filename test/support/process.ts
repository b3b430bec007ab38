/** Programs of their own for tests: started, read by the line, and ended by their id. */
import { type ChildProcess, spawn } from "node:child_process"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Readable } from "node:stream"

export interface Ending {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export interface ProgramOptions {
  /** A command that runs the program, such as a tracer with its arguments. */
  readonly under?: readonly string[]
  /** Options of Node itself. */
  readonly nodeOptions?: readonly string[]
  /** Opens a channel for messages beside the standard streams. */
  readonly talks?: boolean
}

interface Waiting {
  readonly wanted: RegExp
  resolve(line: string): void
  reject(error: Error): void
}

export class Program {
  readonly process: ChildProcess
  /** Standard output, as whole lines. */
  readonly lines: string[] = []
  /** Resolves when it has ended and everything that it wrote has been read. */
  readonly ended: Promise<Ending>
  stderr = ""
  #ending: Ending | null = null
  #waiting: Waiting[] = []

  private constructor(process: ChildProcess, onLine: (line: string) => void) {
    this.process = process
    byLine(process.stdout!, (line) => {
      this.lines.push(line)
      onLine(line)
      this.#read(line)
    })
    byLine(process.stderr!, (line) => {
      this.stderr += `${line}\n`
      this.#read(line)
    })
    this.ended = new Promise((resolve) => {
      process.on("close", (code, signal) => {
        this.#ending = { code, signal }
        for (const { wanted, reject } of this.#waiting) reject(this.#endedBefore(wanted))
        resolve(this.#ending)
      })
    })
  }

  /** Runs a file with this Node. */
  static start(
    file: URL,
    args: readonly string[],
    options: ProgramOptions = {},
    onLine: (line: string) => void = () => {},
  ): Program {
    const { under = [], nodeOptions = [] } = options
    const [command, ...rest] = [...under, process.execPath, ...nodeOptions, file.pathname, ...args]
    const child = spawn(command!, rest, {
      stdio: options.talks ? ["ignore", "pipe", "pipe", "ipc"] : ["ignore", "pipe", "pipe"],
      serialization: "advanced",
      env: {
        ...NO_SCRAPES,
        ...inheritedEnvironment(),
        // Compiled once for all: a program starts in half the time.
        NODE_COMPILE_CACHE: join(tmpdir(), "node-compile-cache"),
      },
    })
    return new Program(child, onLine)
  }

  /** Resolves with the first line like this on either stream, past or to come; rejects when the program ends without it. */
  line(wanted: RegExp): Promise<string> {
    const found = [...this.lines, ...this.stderr.split("\n")].find((line) => wanted.test(line))
    if (found !== undefined) return Promise.resolve(found)
    if (this.#ending !== null) return Promise.reject(this.#endedBefore(wanted))
    return new Promise((resolve, reject) => this.#waiting.push({ wanted, resolve, reject }))
  }

  /** Ends it as a crash does. */
  async kill(): Promise<Ending> {
    if (this.#ending === null) this.process.kill("SIGKILL")
    return this.ended
  }

  #read(line: string): void {
    this.#waiting = this.#waiting.filter(({ wanted, resolve }) => {
      if (!wanted.test(line)) return true
      resolve(line)
      return false
    })
  }

  #endedBefore(wanted: RegExp): Error {
    const { code, signal } = this.#ending!
    return new Error(
      `the program ended (${signal ?? `code ${code}`}) without a line like ${wanted}\n${this.stderr}`,
    )
  }
}

/** Programs that run at once would warn that the default port for metrics is taken. */
export const NO_SCRAPES = { POSTHORN_METRICS: "off" }

/** Without the variables of the test run, which a program would warn of as unknown. */
export function inheritedEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith("POSTHORN_TEST_")),
  )
}

function byLine(stream: Readable, read: (line: string) => void): void {
  let rest = ""
  stream.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n")
    rest = lines.pop()!
    for (const line of lines) read(line)
  })
}

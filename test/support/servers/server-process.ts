/** One server program that a test may stop, kill and start again: always on the same port and with the same data. */
import type { ChildProcess } from "node:child_process"
import { once } from "node:events"
import { closeSync, openSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import type { Home } from "./home.ts"

const START_MS = 30_000
const PROBE_EVERY_MS = 10

/** Errors of a PostgreSQL that starts before the last processes of a killed one have ended. */
const PREDECESSOR_STILL_ENDING = /pre-existing shared memory block|lock file ".*" already exists/

export class ServerProcess {
  readonly #home: Home
  readonly #program: string
  readonly #args: readonly string[]
  readonly #answers: () => Promise<void>
  #process: ChildProcess | null = null

  /** `answers` asks the server something by a way that only this server can answer, and rejects if it does not. */
  constructor(home: Home, program: string, args: readonly string[], answers: () => Promise<void>) {
    this.#home = home
    this.#program = program
    this.#args = args
    this.#answers = answers
  }

  /** Resolves when it answers. */
  async start(): Promise<void> {
    const deadline = performance.now() + START_MS
    for (;;) {
      const before = this.#log().length
      const child = this.#spawn()
      while (child.exitCode === null && child.signalCode === null && performance.now() < deadline) {
        try {
          return await this.#answers()
        } catch {
          await delay(PROBE_EVERY_MS)
        }
      }
      const said = this.#log().slice(before)
      if (performance.now() >= deadline || !PREDECESSOR_STILL_ENDING.test(said))
        throw new Error(`${this.#program} did not start:\n${said}`)
    }
  }

  /** Resolves when it has ended; at once if it has already. */
  async stop(signal: "SIGINT" | "SIGQUIT" | "SIGKILL"): Promise<void> {
    const child = this.#process
    if (child === null) return
    const ended = once(child, "exit")
    child.ref()
    child.kill(signal)
    await ended
  }

  async close(): Promise<void> {
    await this.#home.watchdog.close()
  }

  #spawn(): ChildProcess {
    // A file, not a pipe: a test that blocks its own process must not block the server, too.
    const log = openSync(this.#logFile, "a")
    const child = this.#home.spawn(this.#program, this.#args, { stdio: ["ignore", log, log] })
    closeSync(log)
    child.unref()
    this.#process = child
    this.#home.watchdog.watch(child.pid!)
    child.once("exit", () => {
      this.#process = null
      this.#home.watchdog.watch(0)
    })
    return child
  }

  get #logFile(): string {
    return join(this.#home.folder, "log")
  }

  #log(): string {
    return readFileSync(this.#logFile, { encoding: "utf8", flag: "a+" })
  }
}

/** The process that delivers in the demo: starts it, sends through it, kills it. */
import { type ChildProcess, fork } from "node:child_process"
import type { MessageInput } from "../../index.ts"
import { APP } from "./endpoints.ts"
import type { DemoEvent, FromEngine, Receipt, ToEngine } from "./engine.ts"

const PROGRAM = new URL(import.meta.url.endsWith(".ts") ? "./engine.ts" : "./engine.js", import.meta.url)
const KEPT_COMPLAINT_CHARS = 2000

interface Waiting {
  resolve(receipt: Receipt): void
  reject(error: Error): void
}

export class EngineProcess {
  readonly #child: ChildProcess
  readonly #onEvent: (event: DemoEvent) => void
  readonly #waiting = new Map<number, Waiting>()
  readonly #exited: Promise<unknown>
  readonly #ready = Promise.withResolvers<void>()
  #failure: Error | null = null
  #refs = 0
  #complaint = ""
  #ending = false

  constructor(file: string, onEvent: (event: DemoEvent) => void) {
    this.#onEvent = onEvent
    this.#child = fork(PROGRAM, [file, APP], { stdio: ["ignore", "ignore", "pipe", "ipc"] })
    this.#child.stderr?.on("data", (text: Buffer) => {
      this.#complaint = (this.#complaint + text).slice(-KEPT_COMPLAINT_CHARS)
    })
    this.#child.on("message", (message: FromEngine) => this.#hear(message))
    this.#child.on("error", (error) => this.#lost(error.message))
    // After its last output.
    this.#child.on("close", () => this.#lost(this.#complaint))
    this.#exited = new Promise((resolve) => this.#child.once("exit", resolve))
  }

  /** Resolves when the process has opened the file. */
  get ready(): Promise<void> {
    return this.#ready.promise
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** Set when the process ended by itself. */
  get failure(): Error | null {
    return this.#failure
  }

  /** Resolves when the message is on disk. */
  send(message: MessageInput): Promise<Receipt> {
    if (this.#failure !== null) return Promise.reject(this.#failure)
    const ref = ++this.#refs
    return new Promise((resolve, reject) => {
      this.#waiting.set(ref, { resolve, reject })
      // If the process has ended, #lost rejects with the reason.
      this.#child.send({ kind: "send", ref, message } satisfies ToEngine, () => {})
    })
  }

  /** SIGKILL: no handler runs, nothing is flushed. */
  async kill(): Promise<void> {
    this.killNow()
    await this.#exited
  }

  killNow(): void {
    this.#ending = true
    this.#child.kill("SIGKILL")
  }

  async close(): Promise<void> {
    this.#ending = true
    this.#child.send({ kind: "close" } satisfies ToEngine)
    await this.#exited
  }

  #hear(message: FromEngine): void {
    switch (message.kind) {
      case "ready":
        return this.#ready.resolve()
      case "event":
        return this.#onEvent(message.event)
      case "accepted":
        return this.#waiting.get(message.ref)?.resolve(message.receipt)
      case "refused":
        return this.#waiting.get(message.ref)?.reject(new Error(message.reason))
      default:
        return message satisfies never
    }
  }

  #lost(complaint: string): void {
    if (this.#ending || this.#failure !== null) return
    const lines = complaint.trim().split("\n")
    const said = lines.find((line) => line.includes("Error: ")) ?? lines.at(-1)
    this.#failure = new Error(`the engine's process ended by itself${said ? `: ${said}` : ""}`)
    this.#ready.reject(this.#failure)
    for (const { reject } of this.#waiting.values()) reject(this.#failure)
  }
}

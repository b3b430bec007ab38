/** A Posthorn in another process, used as if it were here. */
import { onTestFinished } from "vitest"
import {
  type ErrorCode,
  type Posthorn,
  PosthornError,
  type PosthornOptions,
  type WebhookEvent,
} from "../../src/index.ts"
import { Program } from "../support/process.ts"

type Reply =
  | { readonly event: WebhookEvent }
  | { readonly number: number; readonly value: unknown }
  | { readonly number: number; readonly error: { readonly code?: ErrorCode; readonly message: string } }

const CHILD = new URL("./remote-child.ts", import.meta.url)

export class Remote {
  readonly program: Program
  readonly events: WebhookEvent[] = []
  /** The library's front door; what it rejects with there is what it rejects with here. */
  readonly posthorn = this.#door("") as Posthorn
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>()
  readonly #watchers = new Set<() => void>()

  private constructor(program: Program) {
    this.program = program
    program.process.on("message", (reply: Reply) => this.#hear(reply))
    void program.ended.then(() => {
      for (const { reject } of this.#waiting.values())
        reject(new Error(`the process ended\n${program.stderr}`))
    })
  }

  /** Starts the process; `under` is a command that runs it. */
  static start(under: readonly string[] = []): Remote {
    const remote = new Remote(Program.start(CHILD, [], { under, talks: true }))
    onTestFinished(async () => void (await remote.program.kill()))
    return remote
  }

  async open(options: PosthornOptions): Promise<this> {
    await this.order("open", options)
    return this
  }

  order(name: string, ...args: unknown[]): Promise<unknown> {
    const number = this.#waiting.size
    const waiting = Promise.withResolvers<unknown>()
    this.#waiting.set(number, waiting)
    this.program.process.send({ number, name, args })
    return waiting.promise
  }

  /** Resolves when so many events of this type have been published there. */
  async published(type: WebhookEvent["type"], count: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const check = () => {
      if (this.events.filter((event) => event.type === type).length >= count) resolve()
    }
    this.#watchers.add(check)
    check()
    await promise
    this.#watchers.delete(check)
  }

  #hear(reply: Reply): void {
    if ("event" in reply) {
      this.events.push(reply.event)
      for (const watcher of this.#watchers) watcher()
      return
    }
    const { resolve, reject } = this.#waiting.get(reply.number)!
    if ("value" in reply) return resolve(reply.value)
    const { code, message } = reply.error
    reject(code === undefined ? new Error(message) : new PosthornError(code, message))
  }

  /** Every property leads one step further, every call goes out. */
  #door(path: string): unknown {
    return new Proxy(() => {}, {
      // A promise would take it for one of its own if it had a `then`.
      get: (_, name) =>
        name === "then" ? undefined : this.#door(path === "" ? String(name) : `${path}.${String(name)}`),
      apply: (_target, _this, args) => this.order(path, ...args),
    })
  }
}

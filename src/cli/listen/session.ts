/** One run of `posthorn listen`: makes what it needs, forwards until it is stopped, and deletes what it made. */
import { type AgentClient, connectAgent } from "../../agent/agent.ts"
import type { AgentEvent } from "../../agent/event.ts"
import { forwardTo } from "../../agent/forward.ts"
import { systemClock } from "../../core/clock.ts"
import { type Api, path } from "../api.ts"
import { complain } from "../complain.ts"
import type { Output } from "../output.ts"
import type { Display, Listening } from "./display.ts"
import { LineDisplay } from "./line-display.ts"
import type { ListenFlags } from "./listen-flags.ts"
import { LiveDisplay, liveTerminal } from "./live-display.ts"
import { type Setup, setUp } from "./setup.ts"
import { deleteStale } from "./stale.ts"
import { TemporaryThings } from "./temporary.ts"

/** A local program that does not answer is not waited for: its webhooks end with the endpoint. */
const CLOSE_MS = 2000
/** The largest that a server can be set to send. */
const MOST_FRAME_BYTES = 100_663_296

export interface SessionOptions {
  readonly server: string
  readonly forward: URL
  readonly flags: ListenFlags
  /** Aborted by Ctrl-C and by signals. */
  readonly stopped: AbortSignal
  stop(): void
}

export class Session {
  readonly #api: Api
  readonly #out: Output
  readonly #options: SessionOptions
  readonly #things: TemporaryThings

  constructor(api: Api, out: Output, options: SessionOptions) {
    this.#api = api
    this.#out = out
    this.#options = options
    this.#things = new TemporaryThings(api, options.flags.server)
    // Also after a second signal, which ends the process at once.
    process.once("exit", () => {
      const { left } = this.#things
      if (left !== null) complain(left)
    })
  }

  /** Returns the exit code. */
  async run(): Promise<number> {
    const { flags, stopped } = this.#options
    try {
      await this.#forward(await setUp(this.#api, this.#things, flags, stopped))
    } catch (error) {
      if (!stopped.aborted) throw error
    } finally {
      await this.#things.deleteAll()
    }
    return this.#things.left === null ? 0 : 1
  }

  async #forward(setup: Setup): Promise<void> {
    const { forward, stopped } = this.#options
    const display = this.#open({ ...setup, forward })
    const agent = this.#connect(setup, display)
    const stop = () => {
      display.leave()
      void agent.close()
    }
    stopped.addEventListener("abort", stop)
    if (stopped.aborted) stop()
    void this.#deleteStale(display)
    const error = await agent.closed
    display.leave()
    if (error !== null) throw sessionEnded(error, setup.expiresAt)
  }

  #open(listening: Listening): Display {
    const { flags, stop } = this.#options
    const terminal = flags.print || flags.json ? null : liveTerminal()
    if (terminal === null) return new LineDisplay(this.#out, listening, flags.print ?? false)
    const { appId, endpointId } = listening
    const sendAgain = async ({ messageId }: AgentEvent) =>
      void (await this.#api.post(path`/app/${appId}/msg/${messageId}/endpoint/${endpointId}/resend`))
    return new LiveDisplay(terminal, this.#out, listening, { sendAgain, end: stop })
  }

  #connect({ name, token }: Setup, display: Display): AgentClient {
    const { server, forward } = this.#options
    const handle = forwardTo(forward, systemClock())
    return connectAgent({
      server,
      key: token,
      name,
      handle(event) {
        display.arrived(event)
        return handle(event)
      },
      maxFrameBytes: MOST_FRAME_BYTES,
      closeTimeoutMs: CLOSE_MS,
      logger: "silent",
      onConnected: () => display.connected(),
      onDisconnected: (disconnected) => display.disconnected(disconnected),
      onHandled: (handled) => display.answered(handled),
    })
  }

  /** It is nobody's task: another run tries again. */
  async #deleteStale(display: Display): Promise<void> {
    const names = await deleteStale(this.#api, this.#options.flags.app, Date.now()).catch(() => [])
    for (const name of names) display.note(`Deleted ${name}, which an earlier run had left behind.`)
  }
}

function sessionEnded(error: Error, expiresAt: Date): Error {
  return Date.now() >= expiresAt.getTime()
    ? new Error("the session is over after a day; run the command again for another one")
    : new Error(`the session is over: ${error.message}`)
}

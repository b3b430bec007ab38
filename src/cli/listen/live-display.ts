/** A table on a terminal that is drawn again with every change, and the keys that work in it. */
import type { ReadStream, WriteStream } from "node:tty"
import type { AgentEvent } from "../../agent/event.ts"
import type { AgentDisconnected, AgentHandled } from "../../agent/options.ts"
import { printable, wrapped } from "../../core/text.ts"
import { sentenceText } from "../../core/wording.ts"
import { disconnectedText } from "../agent-line.ts"
import type { Output } from "../output.ts"
import { type Display, headingNotes, type Listening } from "./display.ts"
import { type KeyAction, keysIn, pressed } from "./keys.ts"
import { answered, arrived, EMPTY, type ListenState } from "./listen-state.ts"
import { clockTime, listenLines } from "./listen-view.ts"
import { requestLines } from "./request-text.ts"
import { Screen } from "./screen.ts"

const LEAST_ROWS = 10

export interface Terminal {
  readonly input: ReadStream
  readonly output: WriteStream
}

/** Null: nobody looks, or the terminal cannot draw. */
export function liveTerminal(): Terminal | null {
  const { stdin, stdout } = process
  const isLive = stdin.isTTY && stdout.isTTY && stdout.columns > 0 && process.env.TERM !== "dumb"
  return isLive ? { input: stdin as ReadStream, output: stdout as WriteStream } : null
}

export interface LiveActions {
  /** Sends a webhook to the local program again. */
  sendAgain(event: AgentEvent): Promise<void>
  end(): void
}

export class LiveDisplay implements Display {
  readonly #input: ReadStream
  readonly #actions: LiveActions
  readonly #screen: Screen
  readonly #typed = (text: string) => this.#type(text)
  #state: ListenState = { ...EMPTY, problem: "Connecting." }

  constructor({ input, output }: Terminal, { look }: Output, listening: Listening, actions: LiveActions) {
    this.#input = input
    this.#actions = actions
    const url = printable(listening.url)
    const notes = () => headingNotes(listening).flatMap((one) => wrapped(printable(one), output.columns))
    const heading = () => [look.paint(url, "title"), ...notes(), ""]
    this.#screen = new Screen(output, heading, () => {
      const { columns, rows } = output
      // The heading stays in sight where there is room for both.
      const above = Math.ceil(url.length / columns) + notes().length + 1
      return listenLines(this.#state, {
        columns,
        rows: Math.max(LEAST_ROWS, rows - above),
        paint: look.paint,
      })
    })
    input.setRawMode(true)
    input.setEncoding("utf8").on("data", this.#typed)
    // On every exit, also after a bug.
    process.once("exit", () => this.leave())
  }

  arrived(event: AgentEvent): void {
    this.#change(arrived(this.#state, event, new Date()))
  }

  answered(handled: AgentHandled): void {
    this.#change(answered(this.#state, handled))
  }

  connected(): void {
    this.#change({ ...this.#state, problem: null })
  }

  disconnected(disconnected: AgentDisconnected): void {
    const { retryInMs } = disconnected
    if (retryInMs === null) return
    const next = clockTime(new Date(Date.now() + retryInMs))
    this.#change({ ...this.#state, problem: disconnectedText(disconnected, `at ${next}`) })
  }

  note(sentence: string): void {
    this.#screen.print([printable(sentence)])
  }

  leave(): void {
    this.#screen.leave()
    this.#input.off("data", this.#typed)
    this.#input.setRawMode(false)
    this.#input.pause()
  }

  #type(text: string): void {
    for (const key of keysIn(text)) {
      const { state, action } = pressed(this.#state, key)
      this.#change(state)
      if (action !== null) this.#do(action)
    }
  }

  #do(action: KeyAction): void {
    switch (action.kind) {
      case "again":
        return void this.#sendAgain(action.webhook.event)
      case "print":
        return this.#screen.print([...requestLines(action.webhook.event), ""])
      case "end":
        return this.#actions.end()
      default:
        return action satisfies never
    }
  }

  async #sendAgain(event: AgentEvent): Promise<void> {
    try {
      await this.#actions.sendAgain(event)
    } catch (error) {
      const notice = sentenceText(`It cannot be sent again: ${(error as Error).message}`)
      this.#change({ ...this.#state, notice })
    }
  }

  #change(state: ListenState): void {
    this.#state = state
    this.#screen.changed()
  }
}

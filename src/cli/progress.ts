/** Shows how far a long command has come: a bar on a terminal, a line now and then elsewhere. */
import type { WriteStream } from "node:tty"
import { column } from "./text.ts"

export interface Progress {
  show(what: string, done: number, total: number): void
  /** Gives the line back. */
  end(): void
}

const BAR = 30
const FRAME_MS = 100
const LINE_MS = 5000
const NARROWEST = 80
const CLEAR_LINE = "\r\x1b[K"

export const noProgress: Progress = { show() {}, end() {} }

export function progressOn(output: WriteStream): Progress {
  const wide = output.isTTY && output.columns >= NARROWEST && process.env.TERM !== "dumb"
  return wide ? new Bar(output) : new Lines(output)
}

class Bar implements Progress {
  readonly #output: WriteStream
  #drawnAt = Number.NEGATIVE_INFINITY

  constructor(output: WriteStream) {
    this.#output = output
  }

  show(what: string, done: number, total: number): void {
    if (performance.now() - this.#drawnAt < FRAME_MS && done < total) return
    this.#drawnAt = performance.now()
    const full = Math.round(share(done, total) * BAR)
    const bar = "█".repeat(full) + "░".repeat(BAR - full)
    this.#output.write(`${CLEAR_LINE}${bar} ${column(what, 20)}${rowsOf(done, total)}`)
  }

  end(): void {
    this.#output.write(CLEAR_LINE)
  }
}

class Lines implements Progress {
  readonly #output: WriteStream
  #what = ""
  #writtenAt = 0

  constructor(output: WriteStream) {
    this.#output = output
  }

  show(what: string, done: number, total: number): void {
    if (what === this.#what && performance.now() - this.#writtenAt < LINE_MS) return
    this.#what = what
    this.#writtenAt = performance.now()
    this.#output.write(`${column(what, 20)}${rowsOf(done, total)}\n`)
  }

  end(): void {}
}

function rowsOf(done: number, total: number): string {
  return `${Math.floor(share(done, total) * 100)} % (${done} of ${total} rows)`
}

function share(done: number, total: number): number {
  return total === 0 ? 1 : done / total
}

/** Progress of a long command: a bar on a terminal, lines elsewhere. */
import type { WriteStream } from "node:tty"
import { column } from "../core/text.ts"

export interface Progress {
  show(what: string, done: number, total: number): void
  /** Clears the bar. */
  end(): void
}

const BAR = 30
const FRAME_MS = 100
const LINE_MS = 5000
const NARROWEST = 80
const CLEAR_LINE = "\r\x1b[K"

export const noProgress: Progress = { show() {}, end() {} }

export function progressOn(output: WriteStream, unit = "rows"): Progress {
  const wide = output.isTTY && output.columns >= NARROWEST && process.env.TERM !== "dumb"
  return wide ? new Bar(output, unit) : new Lines(output, unit)
}

class Bar implements Progress {
  readonly #output: WriteStream
  readonly #unit: string
  #drawnAt = Number.NEGATIVE_INFINITY

  constructor(output: WriteStream, unit: string) {
    this.#output = output
    this.#unit = unit
  }

  show(what: string, done: number, total: number): void {
    if (performance.now() - this.#drawnAt < FRAME_MS && done < total) return
    this.#drawnAt = performance.now()
    const full = Math.round(share(done, total) * BAR)
    const bar = "█".repeat(full) + "░".repeat(BAR - full)
    this.#output.write(`${CLEAR_LINE}${bar} ${column(what, 20)}${shareOf(done, total, this.#unit)}`)
  }

  end(): void {
    this.#output.write(CLEAR_LINE)
  }
}

class Lines implements Progress {
  readonly #output: WriteStream
  readonly #unit: string
  #what = ""
  #writtenAt = 0

  constructor(output: WriteStream, unit: string) {
    this.#output = output
    this.#unit = unit
  }

  show(what: string, done: number, total: number): void {
    if (what === this.#what && performance.now() - this.#writtenAt < LINE_MS) return
    this.#what = what
    this.#writtenAt = performance.now()
    this.#output.write(`${column(what, 20)}${shareOf(done, total, this.#unit)}\n`)
  }

  end(): void {}
}

function shareOf(done: number, total: number, unit: string): string {
  return `${Math.floor(share(done, total) * 100)} % (${done} of ${total} ${unit})`
}

function share(done: number, total: number): number {
  return total === 0 ? 1 : done / total
}

/** The demo's display: a terminal, redrawn in place, or a pipe with a line for each event. */
import type { WriteStream } from "node:tty"
import type { Audit } from "./audit.ts"
import type { DemoState } from "./state.ts"
import { auditLines, heading, logLine, table } from "./view.ts"

export interface Display {
  /** Prints the final result. */
  end(audit: Audit): void
  /** Restores the terminal; idempotent. */
  leave(): void
}

const FRAME_MS = 100
const SMALLEST = { columns: 80, rows: 20 }
const ESC = "\x1b["
// Alternate screen, no cursor, no line wrapping; and the reverse.
const ENTER = `${ESC}?1049h${ESC}?25l${ESC}?7l`
const LEAVE = `${ESC}?7h${ESC}?25h${ESC}?1049l`

export function openDisplay(output: WriteStream, state: DemoState): Display {
  const large = output.columns >= SMALLEST.columns && output.rows >= SMALLEST.rows
  return output.isTTY && large && process.env.TERM !== "dumb"
    ? onScreen(output, state)
    : inLines(output, state)
}

function onScreen(output: WriteStream, state: DemoState): Display {
  let left = false
  const draw = () => {
    const top = [...heading(state, Date.now()), "", ...table(state, Date.now()), ""]
    const first = Math.max(0, state.lines.length - Math.max(0, output.rows - top.length))
    const log = state.lines.slice(first).map((line) => logLine(line, output.columns))
    output.write(`${ESC}H${[...top, ...log].map((line) => `${ESC}K${line}`).join("\n")}${ESC}J`)
  }
  output.write(ENTER)
  draw()
  const timer = setInterval(draw, FRAME_MS)
  const leave = () => {
    if (left) return
    left = true
    clearInterval(timer)
    output.write(LEAVE)
  }
  return {
    leave,
    end(audit) {
      leave()
      output.write(`${[...table(state, Date.now()), "", ...auditLines(audit)].join("\n")}\n`)
    },
  }
}

function inLines(output: WriteStream, state: DemoState): Display {
  output.write(`posthorn demo on ${state.file}\n`)
  state.onLine((line) => output.write(`${logLine(line, Number.POSITIVE_INFINITY)}\n`))
  return {
    leave() {},
    end: (audit) => void output.write(`\n${auditLines(audit).join("\n")}\n`),
  }
}

/** A block of lines at the end of a terminal's output that is drawn again in place, below what is printed for good. */
import type { WriteStream } from "node:tty"

const FRAME_MS = 30
const ESC = "\x1b["
const HIDE_CURSOR = `${ESC}?25l`
const SHOW_CURSOR = `${ESC}?25h`
const NO_WRAP = `${ESC}?7l`
const WRAP = `${ESC}?7h`
const ERASE_BELOW = `${ESC}J`
const ERASE_ALL = `${ESC}H${ESC}2J`

export class Screen {
  readonly #output: WriteStream
  readonly #heading: () => readonly string[]
  readonly #linesNow: () => readonly string[]
  readonly #resized = () => this.#redrawAll()
  #lines: readonly string[] = []
  #timer: NodeJS.Timeout | null = null
  #isLeft = false

  /** The heading is printed for good, and once more when the terminal's size has changed. */
  constructor(output: WriteStream, heading: () => readonly string[], linesNow: () => readonly string[]) {
    this.#output = output
    this.#heading = heading
    this.#linesNow = linesNow
    output.on("resize", this.#resized)
    output.write(HIDE_CURSOR)
    this.print(heading())
  }

  /** Draws soon: many changes are one frame. */
  changed(): void {
    if (this.#isLeft) return
    this.#timer ??= setTimeout(() => this.#draw(), FRAME_MS)
  }

  /** Above the block, for good. */
  print(lines: readonly string[]): void {
    this.#output.write(`${this.#erase()}${lines.join("\n")}\n`)
    this.#draw()
  }

  /** Leaves the last frame and gives the cursor back; idempotent. */
  leave(): void {
    if (this.#isLeft) return
    this.#draw()
    this.#isLeft = true
    this.#output.off("resize", this.#resized)
    this.#output.write(`\n${SHOW_CURSOR}`)
  }

  /** A line that wraps would make the block higher than its lines. */
  #draw(): void {
    if (this.#isLeft) return
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    const erase = this.#erase()
    this.#lines = this.#linesNow()
    this.#output.write(`${erase}${NO_WRAP}${this.#lines.join("\n")}${WRAP}`)
  }

  #erase(): string {
    const above = this.#lines.length - 1
    this.#lines = []
    return `${above > 0 ? `${ESC}${above}A` : ""}\r${ERASE_BELOW}`
  }

  /** Terminals disagree about what a new width does to old lines: nothing of them can be counted on. */
  #redrawAll(): void {
    this.#lines = []
    this.#output.write(`${ERASE_ALL}${this.#heading().join("\n")}\n`)
    this.#draw()
  }
}

/** The output of a command: text for people, or the API's JSON for programs. */
import type { WriteStream } from "node:tty"
import { styleText } from "node:util"
import { printable, wrapped } from "../core/text.ts"
import { type Column, recordLines, type TableStyle, tableLines } from "./table.ts"

const STYLES = { title: "bold", good: "green", bad: "red" } as const

/** A text, and how it looks. */
export type Piece = readonly [text: string, kind: keyof typeof STYLES | null]

export class Output {
  readonly json: boolean
  readonly #out: WriteStream
  readonly #notes: WriteStream
  readonly look: TableStyle

  /** `notes` gets questions, progress and hints. */
  constructor(
    out: WriteStream,
    notes: WriteStream,
    { json = false, wide = false }: { readonly json?: boolean; readonly wide?: boolean },
  ) {
    this.json = json
    this.#out = out
    this.#notes = notes
    this.look = {
      // Some terminals report a width of 0.
      width: out.isTTY && out.columns > 0 && !wide ? out.columns : null,
      // styleText respects the stream, NO_COLOR and FORCE_COLOR.
      paint: (text, kind) => styleText(STYLES[kind], text, { stream: out }),
    }
  }

  /** `sentence` is for people, `document` for `--json`. */
  say(document: unknown, sentence: string): void {
    if (this.json) this.#document(document)
    else this.lines(sentence.split("\n").map(printable))
  }

  /** Field by field; `view` may omit fields of the document. */
  record(document: unknown, view: object = document as object): void {
    if (this.json) this.#document(document)
    else this.lines(recordLines(view, this.look))
  }

  table<R>(document: unknown, rows: readonly R[], columns: readonly Column<R>[], none: string): void {
    if (this.json) this.#document(document)
    else if (rows.length === 0) this.note(none)
    else {
      let isShortened = false
      this.lines(tableLines(rows, columns, this.look, () => (isShortened = true)))
      if (isShortened) this.note("Shortened to fit the terminal; --wide shows everything.")
    }
  }

  /** One line of many that follow each other: the pieces for people, the document in one line for programs. */
  line(document: unknown, pieces: readonly Piece[]): void {
    if (this.json) return void this.#out.write(`${JSON.stringify(document)}\n`)
    const painted = pieces.map(([text, kind]) =>
      kind === null ? printable(text) : this.look.paint(printable(text), kind),
    )
    this.#out.write(`${painted.join("  ")}\n`)
  }

  /** Not printed with `--json`. A terminal would break it within words. */
  note(sentence: string): void {
    if (this.json) return
    const { isTTY, columns } = this.#notes
    const lines = isTTY && columns > 0 ? wrapped(printable(sentence), columns) : [printable(sentence)]
    this.#notes.write(`${lines.join("\n")}\n`)
  }

  /** Every character of them is printable. */
  lines(lines: readonly string[]): void {
    this.#out.write(`${lines.join("\n")}\n`)
  }

  #document(document: unknown): void {
    this.#out.write(`${JSON.stringify(document, null, 2)}\n`)
  }
}

/** Tables for people, fitted to the terminal, with control characters escaped. */
import { column, columnRight, printable } from "../core/text.ts"
import { spanText } from "./time-flags.ts"

export interface Column<R> {
  readonly title: string
  value(row: R): Cell
  readonly right?: boolean
  /** A shorter form for narrow terminals; tried first. */
  readonly short?: (text: string) => string
  /** Omitted on narrow terminals, the last one first. */
  readonly minor?: boolean
  /** Its colour, where its words are not known ones. */
  mood?(row: R): Mood | null
  /** May be cut on narrow terminals, to at least `least` characters (8). */
  readonly cut?: boolean
  readonly least?: number
}

type Mood = "good" | "bad"

export type Cell = string | number | boolean | null | undefined | Date | readonly string[]

export interface TableStyle {
  /** Null: nothing is cut. */
  readonly width: number | null
  /** Colours a padded text. */
  paint(text: string, kind: "title" | "good" | "bad"): string
}

export const PLAIN: TableStyle = { width: null, paint: (text) => text }

const GAP = "  "
const NARROWEST = 8
const GOOD = /^(connected|delivered|success|ok|finished|healthy)$/
const BAD = /^(absent|dead|fail|failed|failing|error|revoked|expired)$/

export function cellText(cell: Cell): string {
  if (cell === null || cell === undefined || cell === "") return "–"
  if (typeof cell === "boolean") return cell ? "yes" : "no"
  if (Array.isArray(cell)) return cell.length === 0 ? "–" : printable(cell.join(", "))
  return printable(String(cell instanceof Date ? cell.toISOString() : cell))
}

/** A time in ISO form to the second, which --since accepts. */
export function time(value: Date | string | null | undefined): string | null {
  return value == null ? null : new Date(value).toISOString().replace(/\.\d+Z$/, "Z")
}

/** `dlv_…Q3zX9f`: the beginning of an id is its time, and alike in a list; the end is random. */
export function shortId(text: string): string {
  return text.replace(/^([a-z]+_)\w{21}(\w{6})$/, "$1…$2")
}

/** `in 4m 30s` or `2h ago`. */
export function shortTime(text: string): string {
  const seconds = Math.round((Date.parse(text) - Date.now()) / 1000)
  if (Number.isNaN(seconds)) return text
  return seconds < 0 ? `${spanText(-seconds)} ago` : `in ${spanText(seconds)}`
}

export function tableLines<R>(
  rows: readonly R[],
  given: readonly Column<R>[],
  look: TableStyle,
  onShortened: () => void = () => {},
): string[] {
  const { columns, texts, widths, isShortened } = layOut(rows, given, look.width)
  if (isShortened) onShortened()
  const line = (cells: readonly string[], row: R | null) => {
    const parts = cells.map((cell, i) => {
      const isLast = i === cells.length - 1
      if (columns[i]!.right) return columnRight(cell, widths[i]!)
      return isLast && lengthOf(cell) <= widths[i]! ? cell : column(cell, widths[i]!)
    })
    const whole = parts.join(GAP)
    if (look.width !== null && lengthOf(whole) > look.width) return column(whole, look.width)
    if (row === null) return look.paint(whole, "title")
    const moodOf = (i: number) =>
      columns[i]!.mood === undefined ? wordMood(cells[i]!) : columns[i]!.mood(row)
    return parts.map((part, i) => painted(part, moodOf(i), look)).join(GAP)
  }
  return [
    line(
      columns.map(({ title }) => title),
      null,
    ),
    ...texts.map((cells, i) => line(cells, rows[i]!)),
  ]
}

/** One line for each field. */
export function recordLines(record: object, look: TableStyle): string[] {
  const entries = Object.entries(record).filter(([, value]) => value !== undefined)
  const widest = Math.max(0, ...entries.map(([name]) => lengthOf(name)))
  return entries.map(([name, value]) => {
    const text = isCell(value) ? cellText(value) : printable(JSON.stringify(value))
    return `${look.paint(column(name, widest), "title")}${GAP}${painted(text, wordMood(text), look)}`
  })
}

const lengthOf = (text: string) => [...text].length

function isCell(value: unknown): value is Cell {
  if (Array.isArray(value)) return value.every((one) => typeof one === "string")
  return typeof value !== "object" || value === null || value instanceof Date
}

function wordMood(cell: string): Mood | null {
  if (GOOD.test(cell)) return "good"
  return BAD.test(cell) ? "bad" : null
}

function painted(part: string, mood: Mood | null, { paint }: TableStyle): string {
  return mood === null ? part : paint(part, mood)
}

interface Layout<R> {
  readonly columns: readonly Column<R>[]
  readonly texts: readonly (readonly string[])[]
  readonly widths: readonly number[]
  readonly isShortened: boolean
}

/** On a narrow terminal: uses short forms, then omits minor columns, then cuts the widest. */
function layOut<R>(rows: readonly R[], columns: readonly Column<R>[], width: number | null): Layout<R> {
  const whole = measured(rows, columns, false)
  if (width === null || sumOf(whole.widths) <= width) return { ...whole, columns, isShortened: false }
  const shown = [...columns]
  let made = measured(rows, shown, true)
  while (sumOf(floors(shown, made.widths)) > width) {
    const last = shown.findLastIndex(({ minor }) => minor)
    if (last === -1) break
    shown.splice(last, 1)
    made = measured(rows, shown, true)
  }
  return { ...made, columns: shown, widths: fitted(made.widths, shown, width), isShortened: true }
}

function measured<R>(rows: readonly R[], columns: readonly Column<R>[], isNarrow: boolean) {
  const texts = rows.map((row) =>
    columns.map(({ value, short }) => {
      const text = cellText(value(row))
      return isNarrow && short !== undefined ? short(text) : text
    }),
  )
  const widths = columns.map(({ title }, i) =>
    texts.reduce((most, cells) => Math.max(most, lengthOf(cells[i]!)), lengthOf(title)),
  )
  return { texts, widths }
}

function sumOf(widths: readonly number[]): number {
  return widths.reduce((sum, one) => sum + one, GAP.length * (widths.length - 1))
}

function floors<R>(columns: readonly Column<R>[], widths: readonly number[]): number[] {
  return columns.map(({ cut, least = NARROWEST }, i) => (cut ? Math.min(widths[i]!, least) : widths[i]!))
}

/** Cuts the widest column first, below its least width only as a last resort. */
function fitted<R>(wanted: readonly number[], columns: readonly Column<R>[], width: number): number[] {
  const widths = [...wanted]
  for (const lowest of [floors(columns, wanted), columns.map(() => NARROWEST)])
    while (sumOf(widths) > width) {
      const widest = widths.reduce(
        (best, one, i) => (columns[i]!.cut && one > lowest[i]! && one > (widths[best] ?? 0) ? i : best),
        -1,
      )
      if (widest === -1) break
      widths[widest] = widths[widest]! - 1
    }
  return widths
}

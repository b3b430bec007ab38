/** Rows for people: columns in line, cut to what the terminal shows, and nothing in them that acts on it. */
import { column, columnRight, printable } from "../core/text.ts"

export interface Column<R> {
  readonly title: string
  value(row: R): Cell
  readonly right?: boolean
  /** May be cut where the terminal is narrow; ids, which are copied, may not. */
  readonly cut?: boolean
}

export type Cell = string | number | boolean | null | undefined | Date | readonly string[]

export interface Look {
  /** Null where nothing is cut. */
  readonly width: number | null
  /** Colours a text that has its width already. */
  paint(text: string, kind: "title" | "good" | "bad"): string
}

export const PLAIN: Look = { width: null, paint: (text) => text }

const GAP = "  "
const NARROWEST = 8
const GOOD = /^(delivered|success|ok|finished)$/
const BAD = /^(dead|fail|failed|error|revoked|expired)$/

export function cellText(cell: Cell): string {
  if (cell === null || cell === undefined || cell === "") return "–"
  if (typeof cell === "boolean") return cell ? "yes" : "no"
  if (Array.isArray(cell)) return cell.length === 0 ? "–" : printable(cell.join(", "))
  return printable(String(cell instanceof Date ? cell.toISOString() : cell))
}

/** A time as the API writes it, to the second: it can be given back as --since. */
export function time(value: Date | string | null | undefined): string | null {
  return value == null ? null : new Date(value).toISOString().replace(/\.\d+Z$/, "Z")
}

export function tableLines<R>(rows: readonly R[], columns: readonly Column<R>[], look: Look): string[] {
  const texts = rows.map((row) => columns.map((one) => cellText(one.value(row))))
  const widths = fitted(
    columns.map((one, i) =>
      texts.reduce((most, cells) => Math.max(most, lengthOf(cells[i]!)), lengthOf(one.title)),
    ),
    columns,
    look.width,
  )
  const line = (cells: readonly string[], kind?: "title") => {
    const parts = cells.map((cell, i) => {
      const isLast = i === cells.length - 1
      if (columns[i]!.right) return columnRight(cell, widths[i]!)
      return isLast && lengthOf(cell) <= widths[i]! ? cell : column(cell, widths[i]!)
    })
    const whole = parts.join(GAP)
    if (look.width !== null && lengthOf(whole) > look.width) return column(whole, look.width)
    if (kind !== undefined) return look.paint(whole, kind)
    return parts.map((part, i) => coloured(part, cells[i]!, look)).join(GAP)
  }
  return [
    line(
      columns.map(({ title }) => title),
      "title",
    ),
    ...texts.map((cells) => line(cells)),
  ]
}

/** Field by field, one below the other. */
export function recordLines(record: object, look: Look): string[] {
  const entries = Object.entries(record).filter(([, value]) => value !== undefined)
  const widest = Math.max(0, ...entries.map(([name]) => lengthOf(name)))
  return entries.map(([name, value]) => {
    const text = isCell(value) ? cellText(value) : printable(JSON.stringify(value))
    return `${look.paint(column(name, widest), "title")}${GAP}${coloured(text, text, look)}`
  })
}

const lengthOf = (text: string) => [...text].length

function isCell(value: unknown): value is Cell {
  if (Array.isArray(value)) return value.every((one) => typeof one === "string")
  return typeof value !== "object" || value === null || value instanceof Date
}

function coloured(part: string, cell: string, { paint }: Look): string {
  if (GOOD.test(cell)) return paint(part, "good")
  return BAD.test(cell) ? paint(part, "bad") : part
}

/** The widest that may be cut gives way first. */
function fitted(
  wanted: readonly number[],
  columns: readonly Pick<Column<never>, "cut">[],
  width: number | null,
) {
  const widths = [...wanted]
  const total = () => widths.reduce((sum, one) => sum + one, GAP.length * (widths.length - 1))
  while (width !== null && total() > width) {
    const widest = widths.reduce(
      (best, one, i) => (columns[i]!.cut && one > NARROWEST && one > (widths[best] ?? 0) ? i : best),
      -1,
    )
    if (widest === -1) break
    widths[widest] = widths[widest]! - 1
  }
  return widths
}

/** The report of a run, as JSON and as a table. */
import { type Figure, floorOf, isMet } from "./figures.ts"
import type { Machine } from "./machine.ts"

export interface Problem {
  readonly name: string
  readonly kind: "void" | "not measured" | "failed"
  readonly reason: string
}

export interface Report extends Machine {
  readonly quick: boolean
  readonly seconds: number
  /** Steal time as a share of the processors' time; null: unknown. */
  readonly stolenShare: number | null
  /** By dotted names. */
  readonly values: { readonly [name: string]: number }
  readonly problems: readonly Problem[]
}

/** One object, nested by the words of the names. A figure without a value is null. */
export function toJson({ values, problems, ...rest }: Report): object {
  const nested: { [name: string]: unknown } = { ...rest, problems }
  const all = [...problems.map(({ name }) => [name, null] as const), ...Object.entries(values)]
  for (const [name, value] of all) {
    const words = name.split(".")
    const last = words.pop()!
    let at = nested
    for (const word of words) {
      at[word] ??= {}
      at = at[word] as typeof at
    }
    at[last] = value === null ? null : rounded(value)
  }
  return nested
}

export function rounded(value: number): number {
  const places = Math.abs(value) >= 1000 ? 0 : 3
  return Math.round(value * 10 ** places) / 10 ** places
}

const HEAD = ["figure", "value", "floor", "met", "condition"]

export function toTable(report: Report, figures: readonly Figure[]): string {
  const rows = [HEAD, ...figures.map((figure) => row(report, figure))]
  return [summary(report), "", ...aligned(rows), ...problemLines(report)].join("\n")
}

/** The rows as lines, with columns of equal width. */
export function aligned(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((cells) => cells[column]!.length)))
  const line = (cells: readonly string[]) => cells.map((cell, i) => cell.padEnd(widths[i]!)).join("  ")
  return rows.map((cells) => line(cells).trimEnd())
}

/** With the values from which a figure is computed. */
export function toMarkdown(report: Report, figures: readonly Figure[]): string {
  const head = [...HEAD, "measured"]
  const rows = figures.map((figure) => {
    const [name, ...cells] = row(report, figure)
    return [`\`${name}\``, ...cells, measured(report, figure)]
  })
  const lines = [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`)
  return [`${summary(report)}.`, "", ...lines, ...problemLines(report)].join("\n")
}

function row({ values, problems }: Report, figure: Figure): string[] {
  const { name, condition } = figure
  const value = values[name]
  const problem = problems.find((one) => one.name === name)
  if (value === undefined) return [name, "–", floorOf(figure), problem?.kind ?? "not measured", condition]
  const met = isMet(figure, value)
  return [name, `${rounded(value)}`, floorOf(figure), met === null ? "–" : met ? "yes" : "no", condition]
}

function measured({ values }: Report, { name }: Figure): string {
  const prefix = name.slice(0, name.lastIndexOf(".") + 1)
  return Object.entries(values)
    .filter(([other]) => other.startsWith(prefix) && other !== name)
    .map(([other, value]) => `${other.slice(prefix.length)} ${rounded(value)}`)
    .join(", ")
}

function problemLines({ problems }: Report): string[] {
  if (problems.length === 0) return []
  return ["", ...problems.map(({ name, kind, reason }) => `- ${name} ${kind}: ${reason}`)]
}

function summary({ machine, stolenShare, commit, versions, quick, seconds }: Report): string {
  const known = Object.entries(versions).filter(([, version]) => version !== null)
  const programs = known.map(([name, version]) => `${name} ${version}`).join(", ")
  const size = quick ? "A quick run, with smaller numbers" : "A full run"
  const stolen = stolenShare === null ? "" : `, of which others took ${(stolenShare * 100).toFixed(1)} %`
  return `${size}: ${seconds} s on ${machine}${stolen}; ${programs}; commit ${commit ?? "unknown"}`
}

/** The help text of a command. */
import { type Action, CONNECTION_FLAGS, type Group } from "./command.ts"
import type { Flag, FlagTable } from "./flag.ts"

/** `posthorn endpoints get <app> <endpoint> [flags]`, also in error messages. */
export function usageOf(name: string, { args = [] }: Action): string {
  const shown = args.map((one) => (one.optional ? `[${one.name}]` : `<${one.name}>`))
  return ["posthorn", name, ...shown, "[flags]"].join(" ")
}

export function actionHelp(name: string, action: Action): string {
  const { summary, about, args = [], flags = {}, alone, examples } = action
  const own = [...args.map((one) => [`<${one.name}>`, one.about] as const), ...flagRows(flags)]
  const everywhere = alone ? [] : flagRows(CONNECTION_FLAGS)
  const widest = Math.max(0, ...[...own, ...everywhere].map(([left]) => left.length))
  const parts = [
    usageOf(name, action),
    `${sentence(summary)}${about === undefined ? "" : `\n${about}`}`,
    rowLines(own, widest),
    rowLines(everywhere, widest),
    examples.map((example) => `  ${example}`).join("\n"),
  ]
  return parts.filter((part) => part !== "").join("\n\n")
}

export function groupHelp(name: string, { summary, actions }: Group): string {
  const rows = Object.entries(actions).map(([one, { summary: what }]) => [one, what] as const)
  return [
    `posthorn ${name} <command>`,
    sentence(summary),
    rowLines(rows),
    `  posthorn ${name} <command> --help   its flags and examples`,
  ].join("\n\n")
}

function flagRows(flags: FlagTable): (readonly [string, string])[] {
  return Object.entries(flags).map(([name, flag]) => [left(name, flag), flag.about])
}

function left(name: string, { value, many }: Flag): string {
  return value === null ? `--${name}` : `--${name} ${value}${many ? " …" : ""}`
}

export function rowLines(
  rows: readonly (readonly [string, string])[],
  widest = Math.max(...rows.map(([one]) => one.length)),
): string {
  return rows.map(([one, about]) => `  ${one.padEnd(widest)}   ${about}`).join("\n")
}

function sentence(summary: string): string {
  return `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`
}

/** Settings on the command line: flags, help, and errors that name the source of a value. */
import type { ParseArgsOptionsConfig } from "node:util"
import { flagOf, NAMES, type SettingName, settingOf, variablesOf } from "../config/table.ts"
import { type Config, loadConfig } from "../config.ts"
import type { Flags } from "./parse-flags.ts"
import { asUsageError } from "./usage-error.ts"

/** A flag and not a setting: in the environment or a file it would apply to every start. */
export const FORCE = { type: "boolean" } as const

export function flagOptions(names: readonly SettingName[]): ParseArgsOptionsConfig {
  const options: ParseArgsOptionsConfig = { config: { type: "string" } }
  for (const name of names) {
    const flag = flagOf(name)
    if (flag !== null) options[flag] = { type: settingOf(name).off === undefined ? "string" : "boolean" }
  }
  return options
}

export function settingsHelp(names: readonly SettingName[]): string {
  const rows = names.map((name) => {
    const { about, fallback, kind } = settingOf(name)
    const flag = flagOf(name)
    const says = fallback === null || flag === `no-${name}` ? "" : ` (${kind.show(fallback)})`
    return [flag === null ? variablesOf(name)[0]! : `--${flag}`, about + says] as const
  })
  rows.push(["--config", "a JSON file with settings by name (posthorn.json, if there is one here)"])
  rows.push([
    "--force",
    "opens a SQLite file that was moved to PostgreSQL: deliveries that wait in both are sent twice",
  ])
  const widest = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(widest)}   ${right}`).join("\n")
}

export function configFor(flags: Flags): Config {
  try {
    return loadConfig({ flags, environment: process.env })
  } catch (error) {
    throw asUsageError(error, {})
  }
}

/** Names the flag, variable or file of an option that the library refuses. */
export function refused(error: unknown, { sources }: Config): unknown {
  return asUsageError(
    error,
    Object.fromEntries(NAMES.map((name) => [name, sources[name] ?? `--${flagOf(name) ?? name}`])),
  )
}

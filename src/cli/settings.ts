/** The settings as a command takes them: its flags, its help, and errors that name what the user typed. */
import type { ParseArgsOptionsConfig } from "node:util"
import { flagOf, NAMES, type SettingName, settingOf, variablesOf } from "../config/table.ts"
import { type Config, loadConfig } from "../config.ts"
import type { Flags } from "./parse-flags.ts"
import { asUsageError } from "./usage-error.ts"

/** A flag and no setting: in the environment or a file it would stay on for good. */
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
  rows.push(["--force", "opens a SQLite file that was moved to PostgreSQL: what waits in both is sent twice"])
  const widest = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(widest)}   ${right}`).join("\n")
}

/** A misspelt flag or a misspelt name in the file is refused. */
export function configFor(flags: Flags): Config {
  try {
    return loadConfig({ flags, environment: process.env })
  } catch (error) {
    throw asUsageError(error, {})
  }
}

/** What the library says of an option, in the words of whoever gave it. */
export function refused(error: unknown, { sources }: Config): unknown {
  return asUsageError(
    error,
    Object.fromEntries(NAMES.map((name) => [name, sources[name] ?? `--${flagOf(name) ?? name}`])),
  )
}

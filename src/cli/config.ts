/** `posthorn config`: the effective settings and their sources. */

import { NAMES } from "../config/table.ts"
import { libraryOptions, settingsInForce } from "../config.ts"
import { column } from "../core/text.ts"
import { parseOptions } from "../options.ts"
import type { Flags } from "./parse-flags.ts"
import { configFor, flagOptions, refused } from "./settings.ts"

export const options = { ...flagOptions(NAMES), json: { type: "boolean" } } as const

export const help = `posthorn config [--json] [flags]

Prints every setting, its value, and its source: a flag, the environment, the file, or the default.
It takes the flags of posthorn serve, so that a command line can be tried out. Secrets are shown as "set".

  --json     for programs
  --config   another file than posthorn.json

  posthorn config
  POSTHORN_STORE=postgres://db.example.com/posthorn posthorn config --port 80 --json`

interface Row {
  readonly name: string
  /** Null when empty. */
  readonly value: string | null
  readonly source: string
}

export async function run(flags: Flags): Promise<number> {
  const config = configFor(flags)
  try {
    parseOptions(libraryOptions(config))
  } catch (error) {
    throw refused(error, config)
  }
  const rows = settingsInForce(config).map(
    ({ name, value }): Row => ({ name, value, source: config.sources[name] ?? "default" }),
  )
  if (flags.json) {
    const settings = Object.fromEntries(rows.map(({ name, value, source }) => [name, { value, source }]))
    console.log(JSON.stringify(settings, null, 2))
    return 0
  }
  const widths = { name: widest(rows, "name"), value: Math.min(widest(rows, "value"), 60) }
  // A policy may be longer than its column, and is not cut.
  for (const { name, value, source } of rows)
    console.log(`${column(name, widths.name)}  ${(value ?? "–").padEnd(widths.value)}  ${source}`)
  return 0
}

function widest(rows: readonly Row[], field: "name" | "value"): number {
  return Math.max(...rows.map((row) => (row[field] ?? "–").length))
}

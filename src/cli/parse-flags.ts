/** Parses flags with `node:util`; errors become one sentence. */
import { type ParseArgsOptionsConfig, parseArgs } from "node:util"
import { printable } from "../core/text.ts"
import { UsageError, unknown } from "./usage-error.ts"

export type Flags = { readonly [name: string]: string | boolean | (string | boolean)[] | undefined }

export function parseFlags(args: readonly string[], options: ParseArgsOptionsConfig): Flags {
  const { values, positionals } = parseArguments(args, options)
  if (positionals.length === 0) return values
  const known = Object.keys(options).map((name) => `--${name}`)
  throw new UsageError(
    `there is no place for "${printable(positionals[0]!)}" here; the flags are ${known.join(", ")}`,
  )
}

/** Looks for unknown flags first, to suggest the nearest known one. */
export function parseArguments(args: readonly string[], options: ParseArgsOptionsConfig) {
  const { tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true })
  for (const token of tokens) {
    if (token.kind === "option" && !Object.hasOwn(options, token.name)) {
      const known = Object.keys(options).map((name) => `--${name}`)
      throw unknown("flag", token.rawName, known)
    }
  }
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true })
  } catch (error) {
    // Node's messages about dashes continue with advice over several lines.
    throw new UsageError(printable((error as Error).message.split(/\.?\n/, 1)[0]!))
  }
}

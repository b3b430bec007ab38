/** Reads a command's flags; what is wrong with them becomes one sentence. */
import { type ParseArgsOptionsConfig, parseArgs } from "node:util"
import { nearest } from "../core/nearest.ts"
import { printable } from "../core/text.ts"

export type Flags = { readonly [name: string]: string | boolean | (string | boolean)[] | undefined }

/** The command line is wrong: shown without a stack, and the exit code is 2. */
export class UsageError extends Error {}

/** Unknown flags are looked for first, so that the sentence can name the nearest known one. */
export function parseFlags(args: readonly string[], options: ParseArgsOptionsConfig): Flags {
  const { tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true })
  const known = Object.keys(options).map((name) => `--${name}`)
  for (const token of tokens) {
    if (token.kind === "option" && !Object.hasOwn(options, token.name)) {
      throw unknown("flag", token.rawName, known)
    }
    if (token.kind === "positional") {
      throw new UsageError(
        `there is no place for "${printable(token.value)}" here; the flags are ${known.join(", ")}`,
      )
    }
  }
  try {
    return parseArgs({ args: [...args], options }).values as Flags
  } catch (error) {
    throw new UsageError(printable((error as Error).message))
  }
}

export function unknown(what: string, typed: string, known: readonly string[]): UsageError {
  const meant = nearest(typed, known)
  const hint = meant === null ? `known are ${known.join(", ")}` : `did you mean ${meant}?`
  return new UsageError(`unknown ${what} ${printable(typed)}; ${hint}`)
}

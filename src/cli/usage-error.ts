/** Errors in the command line or in a setting. */
import { PosthornError } from "../core/errors.ts"
import { nearest } from "../core/nearest.ts"
import { printable } from "../core/text.ts"

/** The command line is wrong: shown without a stack, and the exit code is 2. */
export class UsageError extends Error {}

export function unknown(what: string, typed: string, known: readonly string[]): UsageError {
  const meant = nearest(typed, known)
  const hint = meant === null ? `known are ${known.join(", ")}` : `did you mean ${meant}?`
  return new UsageError(`unknown ${what} ${printable(typed)}; ${hint}`)
}

/** `names` has, for each of the library's fields, what the user typed it as. Any other error stays what it is. */
export function asUsageError(error: unknown, names: { readonly [field: string]: string }): unknown {
  if (!(error instanceof PosthornError) || error.code !== "invalid_input") return error
  const { field = "", message } = error
  // A setting such as "egress.allow" has a name of its own; "retry.delays" is a part of the setting "retry".
  const setting = names[field] === undefined ? (/^\w+/.exec(field)?.[0] ?? "") : field
  const name = names[setting]
  const text =
    name !== undefined && message.startsWith(setting) ? name + message.slice(setting.length) : message
  return new UsageError(printable(text))
}

/** Errors in the command line or in a setting. */
import { hasCode } from "../core/errors.ts"
import { nearest } from "../core/nearest.ts"
import { printable } from "../core/text.ts"

/** A wrong command line: printed without a stack; the exit code is 2. */
export class UsageError extends Error {}

export function unknown(what: string, typed: string, known: readonly string[]): UsageError {
  const meant = nearest(typed, known)
  const hint = meant === null ? `known are ${known.join(", ")}` : `did you mean ${meant}?`
  return new UsageError(`unknown ${what} ${printable(typed)}; ${hint}`)
}

/** `names` maps the library's fields to the user's flags and variables. Other errors are returned unchanged. */
export function asUsageError(error: unknown, names: { readonly [field: string]: string }): unknown {
  if (!hasCode(error, "invalid_input")) return error
  const { field = "", message } = error
  // "egress.allow" is a setting; "retry.delays" is a field of the setting "retry".
  const setting = names[field] === undefined ? (/^\w+/.exec(field)?.[0] ?? "") : field
  const name = names[setting]
  const text =
    name !== undefined && message.startsWith(setting) ? name + message.slice(setting.length) : message
  return new UsageError(printable(text))
}

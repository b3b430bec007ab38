/** An option that the library refuses, said in the words of the command line. */
import { PosthornError } from "../core/errors.ts"
import { printable } from "../core/text.ts"
import { UsageError } from "./options.ts"

/** `names` has, for each of the library's fields, what the user typed it as. Any other error stays what it is. */
export function asUsageError(error: unknown, names: { readonly [field: string]: string }): unknown {
  if (!(error instanceof PosthornError) || error.code !== "invalid_input") return error
  const { field = "", message } = error
  const name = names[field]
  const text = name !== undefined && message.startsWith(field) ? name + message.slice(field.length) : message
  return new UsageError(printable(text))
}

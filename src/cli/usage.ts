/** An option that the library refuses, said in the words of the command line. */
import { PosthornError } from "../core/errors.ts"
import { printable } from "../core/text.ts"
import { UsageError } from "./options.ts"

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

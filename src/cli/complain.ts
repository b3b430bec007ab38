/** Tells of an error on standard error. A terminal would break its lines within words. */
import { wrapped } from "../core/text.ts"

/** `text` has printable characters and line breaks. */
export function complain(text: string): void {
  const { isTTY, columns } = process.stderr
  const lines = `posthorn: ${text}`.split("\n")
  console.error((isTTY && columns > 0 ? lines.flatMap((line) => wrapped(line, columns)) : lines).join("\n"))
}

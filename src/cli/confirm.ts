/** Asks for confirmation on a terminal; elsewhere `--yes` is required. */
import { createInterface } from "node:readline/promises"
import type { ReadStream, WriteStream } from "node:tty"
import { printable } from "../core/text.ts"
import { UsageError } from "./usage-error.ts"

export interface Terminal {
  readonly input: ReadStream
  readonly output: WriteStream
}

export class Declined extends Error {
  constructor() {
    super("nothing was done")
  }
}

/** `preview` describes the effect; it is not called with `yes`. */
export async function confirm(
  yes: boolean | undefined,
  preview: () => Promise<string>,
  { input, output }: Terminal = { input: process.stdin, output: process.stderr },
): Promise<void> {
  if (yes) return
  const what = printable(await preview())
  if (!input.isTTY || !output.isTTY)
    throw new UsageError(`this needs --yes where nobody can be asked: ${what}`)
  const dialogue = createInterface({ input, output })
  // Ctrl-C and Ctrl-D close the interface, and `question` never resolves.
  const closed = new Promise<string>((resolve) => dialogue.once("close", () => resolve("")))
  try {
    const answer = await Promise.race([dialogue.question(`${what}\nGo on? [y/N] `), closed])
    if (!/^y(es)?$/i.test(answer.trim())) throw new Declined()
  } finally {
    dialogue.close()
  }
}

/** `posthorn serve` as it is typed, in a process of its own. */
import { onTestFinished } from "vitest"
import { programFile } from "../../support/bundled.ts"
import { temporaryFolder } from "../../support/harness.ts"
import { Program } from "../../support/process.ts"

const LISTENS = /"msg":"server \d+ listens on (http:\/\/[^,]+),/

export type Environment = { readonly [name: string]: string }

/** In a folder of its own, on a free port, with these variables. */
export function start(
  args: readonly string[],
  environment: Environment = {},
  folder = temporaryFolder(),
): Program {
  const variables = { PORT: "0", ...environment }
  const under = ["env", "-C", folder, ...Object.entries(variables).map(([name, value]) => `${name}=${value}`)]
  const program = Program.start(programFile("posthorn"), args, { under })
  onTestFinished(async () => void (await program.kill()))
  return program
}

export const serve = (args: readonly string[] = [], environment?: Environment, folder?: string) =>
  start(["serve", ...args], environment, folder)

export const addressOf = async (program: Program) => LISTENS.exec(await program.line(LISTENS))![1]!

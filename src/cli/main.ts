#!/usr/bin/env node
/** The `posthorn` command: loads and runs a command's module. */
import { printable } from "../core/text.ts"
import { VERSION } from "../version.ts"
import { isGroup } from "./command.ts"
import { complain } from "./complain.ts"
import { rowLines } from "./help.ts"
import { type Flags, parseFlags } from "./parse-flags.ts"
import { COMMANDS } from "./registry.ts"
import { UsageError, unknown } from "./usage-error.ts"

const GLOBAL = { help: { type: "boolean", short: "h" }, version: { type: "boolean", short: "v" } } as const

const HELP = `Posthorn ${VERSION}: durable webhook delivery

  posthorn <command> [flags]

${rowLines(Object.entries(COMMANDS).map(([name, { summary }]) => [name, summary]))}

  posthorn <command> --help   what a command does, its flags and examples
  posthorn --version          the version`

async function main([name, ...args]: readonly string[]): Promise<number> {
  if (name === undefined) {
    console.error(HELP)
    return 2
  }
  if (name === "help") return args.length === 0 ? about({}) : main([...args, "--help"])
  if (name.startsWith("-")) return about(parseFlags([name, ...args], GLOBAL))
  const entry = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (entry === undefined) throw await unknownCommand(name)
  await warnOfUnknownVariables()
  const loaded = await entry.load()
  if ("command" in loaded) {
    const { dispatch } = await import("./dispatch.ts")
    return dispatch(name, loaded.command, args)
  }
  const flags = parseFlags(args, { ...loaded.options, help: GLOBAL.help })
  if (!flags.help) return loaded.run(flags)
  console.log(loaded.help)
  return 0
}

/** For an action without its group, suggests the group: `resend` means `messages resend`, not `send`. */
async function unknownCommand(name: string): Promise<UsageError> {
  const groups = await Promise.all(
    Object.entries(COMMANDS).map(async ([group, { load }]) => {
      const loaded = await load()
      return "command" in loaded && isGroup(loaded.command) && Object.hasOwn(loaded.command.actions, name)
        ? [`${group} ${name}`]
        : []
    }),
  )
  const meant = groups.flat()
  if (meant.length === 0) return unknown("command", name, Object.keys(COMMANDS))
  return new UsageError(`unknown command ${printable(name)}; did you mean ${meant.join(", or ")}?`)
}

/** With only these variables set, the table of settings need not be loaded. */
const OF_EVERY_COMMAND: readonly string[] = ["POSTHORN_SERVER", "POSTHORN_API_KEY"]

async function warnOfUnknownVariables(): Promise<void> {
  const given = Object.keys(process.env).filter((name) => name.startsWith("POSTHORN_"))
  if (given.every((name) => OF_EVERY_COMMAND.includes(name))) return
  const { unknownVariables } = await import("../config/table.ts")
  for (const sentence of unknownVariables(process.env)) console.error(`posthorn: warning: ${sentence}`)
}

function about(flags: Flags): number {
  console.log(flags.version ? VERSION : HELP)
  return 0
}

// The reader has closed the pipe (`posthorn demo | head`): end silently, as SIGPIPE would.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  // A command that has something to tidy up listens itself.
  if (process.stdout.listenerCount("error") > 1) return
  if (error.code === "EPIPE") process.exit(141)
  throw error
})

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  const usage = error instanceof UsageError
  complain(usage ? error.message : printable((error as Error).message))
  process.exitCode = usage ? 2 : 1
}

#!/usr/bin/env node
/** The `posthorn` command: finds the file of the command that was asked for and runs it. */
import type { ParseArgsOptionsConfig } from "node:util"
import { VERSION } from "../version.ts"
import { type Flags, parseFlags, UsageError, unknown } from "./options.ts"
import { printable } from "./text.ts"

/** What a command's file exports. */
export interface Command {
  readonly help: string
  readonly options: ParseArgsOptionsConfig
  /** Resolves with the exit code. */
  run(flags: Flags): Promise<number>
}

/** One file each, loaded when it is asked for. */
const COMMANDS: { readonly [name: string]: { readonly summary: string; load(): Promise<Command> } } = {
  demo: {
    summary: "the engine against a receiver that misbehaves, live, in ten seconds",
    load: () => import("./demo.ts"),
  },
  worker: {
    summary: "a process that delivers what waits in a store, and nothing else",
    load: () => import("./worker.ts"),
  },
  migrate: {
    summary: "moves a store from an SQLite file to PostgreSQL",
    load: () => import("./migrate.ts"),
  },
}

const GLOBAL = { help: { type: "boolean", short: "h" }, version: { type: "boolean", short: "v" } } as const
const WIDEST = Math.max(...Object.keys(COMMANDS).map((name) => name.length))

const HELP = `Posthorn ${VERSION}: durable webhook delivery

  posthorn <command> [flags]

${Object.entries(COMMANDS)
  .map(([name, { summary }]) => `  ${name.padEnd(WIDEST)}   ${summary}`)
  .join("\n")}

  posthorn <command> --help   what a command does and its flags
  posthorn --version          the version`

async function main([name, ...args]: readonly string[]): Promise<number> {
  if (name === undefined) {
    console.error(HELP)
    return 2
  }
  if (name.startsWith("-")) return about(parseFlags([name, ...args], GLOBAL))
  const entry = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (entry === undefined) throw unknown("command", name, Object.keys(COMMANDS))
  const command = await entry.load()
  const flags = parseFlags(args, { ...command.options, help: GLOBAL.help })
  if (!flags.help) return command.run(flags)
  console.log(command.help)
  return 0
}

function about(flags: Flags): number {
  console.log(flags.version ? VERSION : HELP)
  return 0
}

// Whoever read our output has gone (`posthorn demo | head`): quiet, as a program that SIGPIPE ends.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(141)
  throw error
})

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  const usage = error instanceof UsageError
  console.error(`posthorn: ${usage ? error.message : printable((error as Error).message)}`)
  process.exitCode = usage ? 2 : 1
}

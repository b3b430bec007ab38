/** Parses the arguments and flags of an action. */
import type { ParseArgsOptionsConfig } from "node:util"
import { InvalidValue } from "../core/invalid-value.ts"
import { printable } from "../core/text.ts"
import { type Action, type Argument, CONNECTION_FLAGS } from "./command.ts"
import type { FlagTable } from "./flag.ts"
import { parseArguments } from "./parse-flags.ts"
import { UsageError } from "./usage-error.ts"

export interface Parsed {
  readonly args: { readonly [name: string]: string | undefined }
  readonly flags: { readonly [name: string]: unknown }
  readonly help: boolean
}

/** The action's flags and the connection flags. */
export function flagsOf({ flags = {}, alone }: Action): FlagTable {
  return alone ? flags : { ...flags, ...CONNECTION_FLAGS }
}

export function parse(usage: string, action: Action, typed: readonly string[]): Parsed {
  const table = flagsOf(action)
  const options: ParseArgsOptionsConfig = { help: { type: "boolean", short: "h" } }
  for (const [name, { value }] of Object.entries(table))
    options[name] = value === null ? { type: "boolean" } : { type: "string", multiple: true }
  const { values, positionals } = parseArguments(typed, options)
  if (values.help) return { args: {}, flags: {}, help: true }
  const flags = Object.entries(values).map(([name, given]) => [name, read(table, name, given)])
  return {
    args: argumentsOf(usage, action.args ?? [], positionals),
    flags: Object.fromEntries(flags),
    help: false,
  }
}

function read(table: FlagTable, name: string, given: unknown): unknown {
  const flag = table[name]!
  const texts = Array.isArray(given) ? (given as string[]) : []
  texts.forEach(refuseShortened)
  if (texts.length > 1 && !flag.many) throw new UsageError(`--${name} can be given once`)
  try {
    return flag.read(texts)
  } catch (error) {
    if (error instanceof InvalidValue) throw new UsageError(`--${name} ${error.message}`)
    throw error
  }
}

/** Tables on a narrow terminal shorten ids like this. */
function refuseShortened(text: string): void {
  if (/^[a-z]+_…/.test(text))
    throw new UsageError(`${printable(text)} is a shortened id; the list shows it whole with --wide`)
}

function argumentsOf(usage: string, wanted: readonly Argument[], given: readonly string[]) {
  given.forEach(refuseShortened)
  const tooMany = given[wanted.length]
  if (tooMany !== undefined)
    throw new UsageError(`there is no place for "${printable(tooMany)}" here; it is ${usage}`)
  const missing = wanted.find(({ optional }, i) => !optional && !given[i])
  if (missing !== undefined) throw new UsageError(`<${missing.name}> is missing; it is ${usage}`)
  return Object.fromEntries(wanted.map(({ name }, i) => [name, given[i]]))
}

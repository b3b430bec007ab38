/** Runs a command of the API: finds the action, parses its flags, opens the client. */
import { Api } from "./api.ts"
import { lazyClient, openClient } from "./client.ts"
import { type Action, type Command, isGroup } from "./command.ts"
import type { FlagTable } from "./flag.ts"
import { actionHelp, groupHelp, usageOf } from "./help.ts"
import { Output } from "./output.ts"
import { flagsOf, type Parsed, parse } from "./parse-action.ts"
import { unknown } from "./usage-error.ts"

export async function dispatch(name: string, command: Command, typed: readonly string[]): Promise<number> {
  if (!isGroup(command)) return perform(name, command, typed)
  const [sub, ...rest] = typed
  if (sub === undefined || sub === "--help" || sub === "-h") {
    const help = groupHelp(name, command)
    if (sub === undefined) console.error(help)
    else console.log(help)
    return sub === undefined ? 2 : 0
  }
  if (sub.startsWith("-") && command.bare !== undefined)
    return perform(`${name} ${command.bare}`, command.actions[command.bare]!, typed)
  const found = Object.hasOwn(command.actions, sub) ? command.actions[sub] : undefined
  if (found === undefined) throw unknown(`command ${name}`, sub, Object.keys(command.actions))
  return perform(`${name} ${sub}`, found, rest)
}

async function perform(name: string, action: Action, typed: readonly string[]): Promise<number> {
  const parsed = parse(usageOf(name, action), action, typed)
  if (parsed.help) {
    console.log(actionHelp(name, action))
    return 0
  }
  const absentStore = action.absentStore?.(parsed.flags) ?? "refuse"
  const client = lazyClient(() => openClient(parsed.flags, process.env, absentStore))
  try {
    const code = await action.run({
      args: parsed.args as { readonly [name: string]: string },
      flags: parsed.flags,
      fields: fieldsOf(action.flags ?? {}, parsed),
      api: new Api(client, namesOf(flagsOf(action))),
      out: new Output(process.stdout, process.stderr, parsed.flags),
    })
    return code ?? 0
  } finally {
    await client.close()
  }
}

function fieldsOf(table: FlagTable, { flags }: Parsed): { readonly [field: string]: unknown } {
  const given = Object.entries(table).filter(([name]) => flags[name] !== undefined)
  return Object.fromEntries(
    given.flatMap(([name, { field }]) => (field === undefined ? [] : [[field, flags[name]]])),
  )
}

/** The API's names of flags, and the flags. */
function namesOf(table: FlagTable): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(table).flatMap(([name, { field }]) => (field === undefined ? [] : [[field, `--${name}`]])),
  )
}

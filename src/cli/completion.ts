/** The words and flags that can be completed at each position of the command line. */
import type { ParseArgsOptionsConfig } from "node:util"
import { type Action, isGroup } from "./command.ts"
import { flagsOf } from "./parse-action.ts"
import type { CommandEntry, Program } from "./registry.ts"

export interface Word {
  readonly name: string
  readonly about: string
}

export interface FlagWord extends Word {
  /** Choices, a file, any text, or null for a switch. */
  readonly value: readonly string[] | "file" | "any" | null
}

/** A position in the command line: after `posthorn`, `posthorn apps` or `posthorn apps list`. */
export interface Place {
  readonly at: string
  readonly words: readonly Word[]
  readonly flags: readonly FlagWord[]
}

export async function placesOf(commands: { readonly [name: string]: CommandEntry }): Promise<Place[]> {
  const words = Object.entries(commands).map(([name, { summary }]) => ({ name, about: summary }))
  const help = { name: "help", about: "what a command does, its flags and examples" }
  const places: Place[] = [
    { at: "", words: [...words, help], flags: [] },
    { at: "help", words, flags: [] },
  ]
  for (const [name, entry] of Object.entries(commands)) {
    const loaded = await entry.load()
    if (!("command" in loaded)) places.push({ at: name, words: [], flags: programFlags(loaded) })
    else if (!isGroup(loaded.command)) places.push(placeOf(name, loaded.command))
    else {
      const actions = Object.entries(loaded.command.actions)
      const subs = actions.map(([sub, { summary }]) => ({ name: sub, about: summary }))
      places.push({ at: name, words: subs, flags: [] })
      places.push(...actions.map(([sub, action]) => placeOf(`${name} ${sub}`, action)))
    }
  }
  return places
}

function placeOf(at: string, action: Action): Place {
  const flags = Object.entries(flagsOf(action)).map(([name, { about, value, choices }]): FlagWord => {
    const kind = value === "FILE" ? "file" : "any"
    return { name: `--${name}`, about, value: value === null ? null : (choices ?? kind) }
  })
  const words = (action.args ?? []).flatMap(({ choices = [], about }) =>
    choices.map((name) => ({ name, about })),
  )
  return { at, words, flags }
}

function programFlags({ options }: Program): FlagWord[] {
  return Object.entries(options as ParseArgsOptionsConfig).map(([name, { type }]) => ({
    name: `--${name}`,
    about: "",
    value: type === "boolean" ? null : name === "config" ? "file" : "any",
  }))
}

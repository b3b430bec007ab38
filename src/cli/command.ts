/** The definition of a command, from which parsing, help and completion are made. */
import type { Api } from "./api.ts"
import { clearable, type FlagTable, type Given, on, text, wholeNumber } from "./flag.ts"
import type { AbsentStore } from "./local-client.ts"
import type { Output } from "./output.ts"

export interface Argument {
  readonly name: string
  readonly about: string
  readonly optional?: true
  readonly choices?: readonly string[]
}

type Arguments<A extends readonly Argument[]> = {
  readonly [One in A[number] as One["name"]]: One extends { readonly optional: true }
    ? string | undefined
    : string
}

export interface ActionRun<F extends FlagTable, A extends readonly Argument[]> {
  readonly args: Arguments<A>
  readonly flags: Given<F>
  /** The values of the flags under the API's names. */
  readonly fields: { readonly [field: string]: unknown }
  readonly api: Api
  readonly out: Output
}

export interface Action<
  F extends FlagTable = FlagTable,
  A extends readonly Argument[] = readonly Argument[],
> {
  readonly summary: string
  /** More details. */
  readonly about?: string
  readonly args?: A
  readonly flags?: F
  readonly examples: readonly string[]
  /** Has no connection flags, or its own. */
  readonly alone?: true
  /** What to do when the local store does not exist; an error by default. */
  absentStore?(flags: Given<F>): AbsentStore
  /** Returns the exit code; undefined is 0. */
  run(run: ActionRun<F, A>): Promise<number | undefined>
}

export interface Group {
  readonly summary: string
  readonly actions: { readonly [name: string]: Action }
  /** The action that is meant by flags without an action, as in `posthorn endpoints --health`. */
  readonly bare?: string
}

export type Command = Action | Group

/** Checks the types of arguments and flags, then erases them. */
export function action<
  const F extends FlagTable = Record<never, never>,
  const A extends readonly Argument[] = [],
>(made: Action<F, A>): Action {
  return made as unknown as Action
}

export const isGroup = (table: Command): table is Group => "actions" in table

/** Flags of every action that uses the API. */
export const CONNECTION_FLAGS = {
  server: text("URL", "the server to ask; without it, a store on this machine (POSTHORN_SERVER)"),
  key: text("KEY", "the server's key (POSTHORN_API_KEY)"),
  store: text("URL", "sqlite:FILE or postgres://…, instead of a server (POSTHORN_STORE)"),
  config: text("FILE", "where the settings of a store on this machine are (posthorn.json)"),
  json: on("the API's JSON, for programs"),
} as const

/** Flags of every action that shows a table. */
export const TABLE_FLAGS = { wide: on("whole ids, and nothing is cut") } as const

export const PAGE_FLAGS = {
  ...TABLE_FLAGS,
  limit: wholeNumber("N", "the most rows (50)"),
  all: on("everything, page after page"),
  iterator: text("ITERATOR", "continues after a page, from its JSON output"),
} as const

export const YES_FLAG = { yes: on("skips the confirmation") } as const

export const WAIT_FLAG = { "no-wait": on("prints the task's id and does not wait") } as const

export const uid = clearable("UID", "your own id for it; empty removes it", { field: "uid" })

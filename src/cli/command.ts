/** What a command is: the table that parsing, help and completion are made from. */
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
  /** What the flags say, in the API's words. */
  readonly fields: { readonly [field: string]: unknown }
  readonly api: Api
  readonly out: Output
}

export interface Action<
  F extends FlagTable = FlagTable,
  A extends readonly Argument[] = readonly Argument[],
> {
  readonly summary: string
  /** Whatever more there is to know. */
  readonly about?: string
  readonly args?: A
  readonly flags?: F
  /** As typed. */
  readonly examples: readonly string[]
  /** It asks neither a server nor a store, and has no flags that say which. */
  readonly alone?: true
  /** What becomes of a local store that is not there; an error unless told. */
  absentStore?(flags: Given<F>): AbsentStore
  /** The exit code; 0 when it says nothing. */
  run(run: ActionRun<F, A>): Promise<number | undefined>
}

export interface Group {
  readonly summary: string
  readonly actions: { readonly [name: string]: Action }
}

export type Command = Action | Group

/** Keeps the types of its arguments and flags to itself. */
export function action<
  const F extends FlagTable = Record<never, never>,
  const A extends readonly Argument[] = [],
>(made: Action<F, A>): Action {
  return made as unknown as Action
}

export const isGroup = (table: Command): table is Group => "actions" in table

/** Of every action that asks the API. */
export const CONNECTION_FLAGS = {
  server: text("URL", "the server to ask; without it, a store on this machine (POSTHORN_SERVER)"),
  key: text("KEY", "the server's key (POSTHORN_API_KEY)"),
  store: text("URL", "sqlite:FILE or postgres://…, instead of a server (POSTHORN_STORE)"),
  config: text("FILE", "where the settings of a store on this machine are (posthorn.json)"),
  json: on("the API's JSON, for programs"),
} as const

/** Of every action that shows a table. */
export const TABLE_FLAGS = { wide: on("whole ids, and nothing is cut") } as const

export const PAGE_FLAGS = {
  ...TABLE_FLAGS,
  limit: wholeNumber("N", "at most so many (50)"),
  all: on("everything, page after page"),
  iterator: text("ITERATOR", "goes on behind a page that --json showed"),
} as const

export const YES_FLAG = { yes: on("does not ask") } as const

export const WAIT_FLAG = { "no-wait": on("says the task's id and does not wait for it") } as const

export const uid = clearable("UID", "your own id for it; empty takes it away", { field: "uid" })

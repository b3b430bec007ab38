/** Arguments and texts that several commands share. */

import { printable } from "../../core/text.ts"
import { type Api, path } from "../api.ts"
import { readList } from "../lists.ts"
import { UsageError } from "../usage-error.ts"

export const APP = { name: "app", about: "the application, by id or uid" } as const
export const ENDPOINT = { name: "endpoint", about: "the endpoint, by id or uid" } as const

type Fields = { readonly [field: string]: unknown }

export function requireChanges(fields: Fields): Fields {
  if (Object.keys(fields).length === 0)
    throw new UsageError("there is nothing to change: give at least one flag that says what")
  return fields
}

/** The given filters, for a preview: ` with app acme, reason gone`. */
export function filterText(flags: Fields, names: readonly string[]): string {
  const given = names.filter((name) => flags[name] !== undefined)
  if (given.length === 0) return ""
  return ` with ${given.map((name) => `${name} ${printable([flags[name]].flat().join(" or "))}`).join(", ")}`
}

/** The endpoint's uid, else its URL; a deleted endpoint may have neither, and is shown by its id. */
export function endpointName(row: {
  readonly endpointId: string
  readonly endpointUid: string | null
  readonly endpointUrl: string | null
}): string {
  return row.endpointUid ?? row.endpointUrl ?? row.endpointId
}

interface Lane {
  readonly endpointId: string
  readonly waiting: number
  readonly retrying: number
}

/** The number of waiting deliveries of an application, or of one endpoint. */
export async function waitingFor(api: Api, app: string, endpointId?: string): Promise<number> {
  const { data } = await readList<Lane>(api, path`/lane`, { app_id: app }, { all: true })
  return data
    .filter((lane) => endpointId === undefined || lane.endpointId === endpointId)
    .reduce((sum, lane) => sum + lane.waiting + lane.retrying, 0)
}

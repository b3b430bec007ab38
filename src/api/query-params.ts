/** Translates the parameters of queries and bodies into the library's. */
import { invalid } from "../core/errors.ts"
import type { BoundedInput, PageInput } from "../resources/paging.ts"
import type { ContentQuery } from "../resources/query.ts"
import type { ViewOptions } from "./views/views.ts"

type Given<T> = { readonly [K in keyof T]?: T[K] | null | undefined }

export function omitNullish<T extends object>(fields: Given<T>): Partial<T> {
  const rest: Partial<T> = {}
  for (const name of Object.keys(fields) as (keyof T)[]) {
    const value = fields[name]
    if (value !== undefined && value !== null) rest[name] = value
  }
  return rest
}

export function toDate(value: Date | string | null | undefined): Date | undefined {
  return value === undefined || value === null ? undefined : new Date(value)
}

/** The value of a field that has two names. A null under one name does not remove the value under the other. */
export function eitherName<T>(newer: T | null | undefined, older: T | null | undefined) {
  return newer ?? older ?? (newer === undefined ? older : newer)
}

export function pageQuery(query: {
  readonly limit?: number
  readonly iterator?: string
  readonly order?: "ascending" | "descending"
  readonly bounded?: boolean
}): PageInput & BoundedInput {
  const { limit, iterator: cursor, order, bounded } = query
  return omitNullish<PageInput & BoundedInput>({ limit, cursor, order, bounded })
}

/** `appId` is null for the organization itself. */
export function ownerQuery(query: { readonly app_id?: string; readonly organization?: boolean }): {
  readonly appId?: string | null
} {
  const { app_id: appId, organization = false } = query
  if (!organization) return omitNullish<{ appId: string }>({ appId })
  if (appId !== undefined) throw invalid("organization", "cannot be true when an application is given")
  return { appId: null }
}

export interface ContentParams {
  readonly event_types?: readonly string[]
  readonly channel?: string
  readonly tag?: string
  readonly before?: Date | string
  readonly after?: Date | string
}

export function contentQuery(query: ContentParams): ContentQuery {
  const { event_types: types, channel, tag, before, after } = query
  return omitNullish<ContentQuery>({
    eventType: types === undefined || types.length === 0 ? undefined : types,
    channel,
    tag,
    since: toDate(after),
    until: toDate(before),
  })
}

export function viewOptions(query: {
  readonly with_content?: boolean
  readonly expanded_statuses?: boolean
}): ViewOptions {
  return { content: query.with_content ?? true, expanded: query.expanded_statuses ?? false }
}

/** Entries of an organization that belong to one of its applications, or to none: keys and sessions. */
import type { Entry, EntryKind, Page } from "../store/store.ts"
import { type ResourceContext, requireApplication } from "./resource-context.ts"

/** Null: the organization itself. */
export function ownerOf(orgId: string, appId: string | null): string {
  return appId ?? orgId
}

/** Reads pages of them: all for undefined, those of the organization itself for null. */
export async function readOwned(
  context: ResourceContext,
  kind: EntryKind,
  app: string | null | undefined,
): Promise<(page: Page<string>) => Promise<Entry[]>> {
  const { store, orgId, clock } = context
  const id = app == null ? app : (await requireApplication(context, app)).id
  const owner = id === undefined ? undefined : ownerOf(orgId, id)
  return (page) => store.listEntries(kind, orgId, page, clock.now(), owner)
}

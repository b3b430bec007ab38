/** How many readers of live events a process takes. */
import { PosthornError } from "../../core/errors.ts"
import { DEFAULT_ORG } from "../../core/org.ts"
import type { LiveFilter } from "./live-filter.ts"
import type { LiveGroup } from "./live-group.ts"

const MOST_READERS = 2000
/** Of all but the operator, who has a key of the whole default organization: places remain for them. */
const MOST_READERS_OF_OTHERS = 1700
/** Of a tenant, and of an application: neither takes the places of all others. */
const MOST_READERS_OF_A_TENANT = 1000
const MOST_READERS_OF_AN_APPLICATION = 200

/** Throws `limit_reached` if there is no room for another reader. `ofApplication` are the groups of this application among all. */
export function requireRoom(
  filter: LiveFilter,
  groups: readonly LiveGroup[],
  ofApplication: (appId: string) => Iterable<LiveGroup>,
): void {
  const { orgId, appIds } = filter
  requireBelow(MOST_READERS, groups, "")
  if (!isOperators(filter)) {
    const ofOthers = groups.filter((group) => !isOperators(group.filter))
    requireBelow(MOST_READERS_OF_OTHERS, ofOthers, " who are not the operator")
  }
  if (orgId !== DEFAULT_ORG) {
    const ofTenant = groups.filter(({ filter }) => filter.orgId === orgId)
    requireBelow(MOST_READERS_OF_A_TENANT, ofTenant, " of this organization")
  }
  if (appIds?.length === 1)
    requireBelow(MOST_READERS_OF_AN_APPLICATION, ofApplication(appIds[0]!), " of this application")
}

function isOperators({ orgId, seesCounts }: LiveFilter): boolean {
  return orgId === DEFAULT_ORG && seesCounts
}

function requireBelow(most: number, groups: Iterable<LiveGroup>, whose: string): void {
  const connected = [...groups].reduce((sum, { readers }) => sum + readers.size, 0)
  if (connected >= most)
    throw new PosthornError("limit_reached", `${most} readers of live events${whose} are connected`)
}

/** What becomes of deliveries whose agent does not connect: docs/decisions/0023-relay.md. */
import type { Policy } from "./policy.ts"
import { ageEndsAt } from "./settle.ts"

/** After a pause, an outage or a downtime of Posthorn, an agent has this long to connect before age ends a delivery. */
const GRACE_MS = 3_600_000

interface Holds {
  readonly resumedAt: number | null
  readonly holdUntil: number | null
  readonly protection: { readonly until: number | null }
}

/** Since when nothing but the absence of its agent keeps the endpoint from being sent to. */
export function heldUntil({ resumedAt, holdUntil, protection }: Holds): number {
  return Math.max(resumedAt ?? 0, holdUntil ?? 0, protection.until ?? 0)
}

/** When age ends a delivery if the agent stays away; null: never. */
export function givenUpAt(ageFrom: number | null, policy: Policy, heldUntil: number): number | null {
  const endsAt = ageEndsAt(ageFrom, policy)
  if (endsAt === null || endsAt > heldUntil) return endsAt
  return heldUntil + GRACE_MS
}

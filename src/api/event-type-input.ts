/** Event types as they come over the wire, in the library's words; and who may see which. */
import type { EventType, EventTypeInput } from "../resources/event-types.ts"
import type { Caller } from "./caller.ts"
import { eitherName } from "./query-params.ts"
import type { EventTypeIn, EventTypePatch } from "./schemas/event-type.ts"

/** One flag, as it was before there could be several, says the same as a list of it. */
export function eventTypeInput(body: EventTypeIn): EventTypeInput
export function eventTypeInput(body: EventTypePatch): Partial<EventTypeInput>
export function eventTypeInput(body: EventTypePatch): Partial<EventTypeInput> {
  const { featureFlag, featureFlags, ...rest } = body
  const older = typeof featureFlag === "string" ? [featureFlag] : featureFlag
  const flags = eitherName(featureFlags, older)
  return { ...(rest as Partial<EventTypeInput>), ...(flags === undefined ? {} : { featureFlags: flags }) }
}

/** What has no flag is seen by all, the rest by those who have one of its flags. */
export function isVisibleTo({ featureFlags }: Caller, type: EventType): boolean {
  if (featureFlags === null || type.featureFlags === null) return true
  return type.featureFlags.some((flag) => featureFlags.includes(flag))
}

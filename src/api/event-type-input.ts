/** Translates event types from the API's fields to the library's; says which callers see them. */
import type { EventType, EventTypeInput } from "../resources/event-types.ts"
import type { Caller } from "./caller.ts"
import { eitherName } from "./query-params.ts"
import type { EventTypeIn, EventTypePatch } from "./schemas/event-type.ts"

/** `featureFlag` is Svix's older field, for a single flag. */
export function eventTypeInput(body: EventTypeIn): EventTypeInput
export function eventTypeInput(body: EventTypePatch): Partial<EventTypeInput>
export function eventTypeInput(body: EventTypePatch): Partial<EventTypeInput> {
  const { featureFlag, featureFlags, ...rest } = body
  const older = typeof featureFlag === "string" ? [featureFlag] : featureFlag
  const flags = eitherName(featureFlags, older)
  return { ...(rest as Partial<EventTypeInput>), ...(flags === undefined ? {} : { featureFlags: flags }) }
}

/** Event types without a flag are visible to all callers, others to callers with one of their flags. */
export function isVisibleTo({ featureFlags }: Caller, type: EventType): boolean {
  if (featureFlags === null || type.featureFlags === null) return true
  return type.featureFlags.some((flag) => featureFlags.includes(flag))
}

/** A choice of event types in a form: the known ones to tick, and a field for others. */
import { type List, useResource } from "../resource.ts"
import type { EventType } from "../types.ts"
import { CheckField, TextField, wordsOf } from "../ui/forms.tsx"

/** More than this would be a form of its own: they are typed instead. */
const OFFERED = 60
/** Before the name of an event type. */
const PREFIX = "event-type "

export function EventTypeInput({ chosen }: { readonly chosen: readonly string[] }) {
  const known = useResource<List<EventType>>("/event-type", { limit: OFFERED })
  const names = known.data?.done ? known.data.data.map(({ name }) => name) : []
  // A field that is made again loses the text of the user.
  if (known.data === null && known.error === null) return null
  const others = chosen.filter((one) => !names.includes(one))
  return (
    <>
      {names.length > 0 && (
        <fieldset class="choices">
          <legend>Event types: tick none for all of them</legend>
          {names.map((name) => (
            <CheckField key={name} name={PREFIX + name} label={name} checked={chosen.includes(name)} />
          ))}
        </fieldset>
      )}
      <TextField
        name="otherEventTypes"
        label={names.length > 0 ? "Other event types" : "Event types"}
        hint={names.length > 0 ? "Separated by commas." : "Separated by commas. Empty: all of them."}
        value={others.join(", ")}
      />
    </>
  )
}

/** The names in the input; null: all event types. */
export function eventTypesOf(values: FormData): readonly string[] | null {
  const ticked = [...values.keys()].filter((one) => one.startsWith(PREFIX))
  const chosen = [...ticked.map((one) => one.slice(PREFIX.length)), ...wordsOf(values, "otherEventTypes")]
  return chosen.length === 0 ? null : [...new Set(chosen)]
}

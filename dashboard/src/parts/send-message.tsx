/** The form that sends a message. */
import { api, parseExactly, pathTo } from "../api.ts"
import { plural } from "../format.ts"
import { toMessage } from "../links.ts"
import { type List, useResource } from "../resource.ts"
import { navigate } from "../router.ts"
import type { EventType, Message } from "../types.ts"
import { Field, FormDialog } from "../ui/dialog.tsx"
import { numberOf, TextField, textOf, wordsOf } from "../ui/forms.tsx"
import { notify } from "../ui/notices.tsx"

/** Event types that are offered while one is typed. */
const OFFERED = 100

export function SendMessage({ appId, onClose }: { readonly appId: string; readonly onClose: () => void }) {
  const types = useResource<List<EventType>>("/event-type", { limit: OFFERED })
  const send = async (values: FormData) => {
    const { id, matched } = await api.post<Message>(pathTo("/app", appId, "/msg"), messageOf(values))
    notify("good", `The message is accepted. ${plural(matched ?? 0, "endpoint")} will get it.`)
    navigate(toMessage(appId, id))
  }
  return (
    <FormDialog title="Send a message" submit="Send" onSubmit={send} onClose={onClose}>
      <Field label="Event type">
        <input name="eventType" list="sent-event-types" required spellcheck={false} autocomplete="off" />
        <datalist id="sent-event-types">
          {types.data?.data.map(({ name }) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      </Field>
      <Field label="Payload" hint="JSON. It is sent exactly so, large integers included.">
        <textarea name="payload" rows={8} required spellcheck={false} defaultValue={"{\n  \n}"} />
      </Field>
      <TextField name="tags" label="Tags" hint="Between spaces or commas. Messages can be found by them." />
      <TextField
        name="channels"
        label="Channels"
        hint="Only endpoints of these channels, and those without any."
      />
      <TextField name="eventId" label="Event id" hint="Your own id. A second message with it is refused." />
      <TextField
        name="delaySeconds"
        type="number"
        label="Delay in seconds"
        hint="Empty: it is sent at once."
      />
    </FormDialog>
  )
}

function messageOf(values: FormData): object {
  const [tags, channels] = [wordsOf(values, "tags"), wordsOf(values, "channels")]
  const [eventId, delaySeconds] = [textOf(values, "eventId"), numberOf(values, "delaySeconds", "The delay")]
  return {
    eventType: textOf(values, "eventType"),
    payload: payloadOf(String(values.get("payload"))),
    ...(tags.length > 0 && { tags }),
    ...(channels.length > 0 && { channels }),
    ...(eventId !== null && { eventId }),
    ...(delaySeconds !== null && { delaySeconds }),
  }
}

/** Throws a sentence that says where the text stops being JSON. */
function payloadOf(text: string): unknown {
  try {
    return parseExactly(text)
  } catch (error) {
    throw new Error(`The payload is not valid JSON: ${(error as Error).message}.`)
  }
}

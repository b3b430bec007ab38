/** Enables a disabled endpoint: sends or discards its waiting deliveries, and replays the messages that it missed, if asked. */
import { api } from "../../api.ts"
import { exactNumber, plural } from "../../format.ts"
import { refreshNow } from "../../refresh.ts"
import { useResource } from "../../resource.ts"
import { may } from "../../session.ts"
import type { EnablePreview } from "../../types.ts"
import { Failure, Skeleton, Time } from "../../ui/basics.tsx"
import { FormDialog } from "../../ui/dialog.tsx"
import { notify } from "../../ui/notices.tsx"
import { type OfEndpoint, pathOf } from "./context.ts"

export function EnableEndpoint({ of, onClose }: { readonly of: OfEndpoint; readonly onClose: () => void }) {
  const preview = useResource<EnablePreview>(pathOf(of, "/enable"))
  const enable = async (values: FormData) => {
    const held = values.get("held") ?? "send"
    await api.post(pathOf(of, "/enable"), { held, missed: values.get("missed") ?? "leave" })
    notify(
      "good",
      held === "discard"
        ? "The waiting deliveries are being discarded. The endpoint is enabled when that is done."
        : "The endpoint is enabled.",
    )
    refreshNow()
  }
  return (
    <FormDialog title="Enable the endpoint" submit="Enable" onSubmit={enable} onClose={onClose}>
      {preview.error !== null && <Failure error={preview.error} retry={preview.reload} />}
      {preview.data === null ? (
        preview.error === null && <Skeleton lines={4} />
      ) : (
        <Choices preview={preview.data} />
      )}
    </FormDialog>
  )
}

function Choices({ preview }: { readonly preview: EnablePreview }) {
  const { held, heldIsLowerBound, missed, missedIsLowerBound, disabledAt } = preview
  const mayReplay = may("CreateAttempts")
  return (
    <>
      {disabledAt !== null && (
        <p>
          It was disabled <Time at={disabledAt} />.
        </p>
      )}
      {held === 0 ? (
        <p>No delivery waits for it.</p>
      ) : (
        <fieldset class="choices">
          <legend>
            {heldIsLowerBound && "At least "}
            {plural(held, "delivery waits", "deliveries wait")} for it
          </legend>
          <Choice name="held" value="send" label="Send them" checked />
          <Choice name="held" value="discard" label="Discard them: they become dead letters" />
        </fieldset>
      )}
      {missed === 0 ? (
        <p>It missed no message while it was disabled.</p>
      ) : (
        <fieldset class="choices">
          <legend>
            {missed === null
              ? "Messages that were sent while it was disabled"
              : `It missed ${missedIsLowerBound ? "at least " : ""}${exactNumber(missed)} ${missed === 1 ? "message" : "messages"} while it was disabled`}
          </legend>
          <Choice name="missed" value="leave" label="Leave them out" checked />
          {mayReplay && missed !== null && <Choice name="missed" value="replay" label="Send them now" />}
        </fieldset>
      )}
    </>
  )
}

interface ChoiceProps {
  readonly name: string
  readonly value: string
  readonly label: string
  readonly checked?: boolean
}

function Choice({ name, value, label, checked = false }: ChoiceProps) {
  return (
    <label class="check">
      <input type="radio" name={name} value={value} defaultChecked={checked} />
      <span>{label}</span>
    </label>
  )
}

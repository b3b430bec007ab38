/** Sends again to an endpoint: its dead letters, or messages that it missed. */
import { useState } from "preact/hooks"
import { api, page } from "../../api.ts"
import { plural } from "../../format.ts"
import { refreshNow } from "../../refresh.ts"
import { useResource } from "../../resource.ts"
import { Field, FormDialog } from "../../ui/dialog.tsx"
import { notify } from "../../ui/notices.tsx"
import { type OfEndpoint, pathOf } from "./context.ts"

const DAY_MS = 86_400_000
const SPANS: readonly (readonly [string, string, number])[] = [
  ["1h", "the last hour", DAY_MS / 24],
  ["1d", "the last 24 hours", DAY_MS],
  ["3d", "the last 3 days", 3 * DAY_MS],
  ["7d", "the last 7 days", 7 * DAY_MS],
  ["14d", "the last 14 days", 14 * DAY_MS - 60_000],
]

type What = "recover" | "replay-missing"

export function SendAgain({ of, onClose }: { readonly of: OfEndpoint; readonly onClose: () => void }) {
  const [what, setWhat] = useState<What>("recover")
  const [span, setSpan] = useState("1d")
  const [, title, spanMs] = SPANS.find(([name]) => name === span)!
  const send = async () => {
    const since = new Date(Date.now() - spanMs).toISOString()
    await api.post(pathOf(of, `/${what}`), { since })
    notify(
      "good",
      what === "recover" ? "Its dead letters are being sent." : "The messages that it missed are being sent.",
    )
    refreshNow()
  }
  const pick = (value: What, label: string) => (
    <label class="check">
      <input
        type="radio"
        name="what"
        value={value}
        checked={what === value}
        onChange={() => setWhat(value)}
      />
      <span>{label}</span>
    </label>
  )
  return (
    <FormDialog title="Send again" submit="Send again" onSubmit={send} onClose={onClose}>
      <fieldset class="choices">
        <legend>Messages</legend>
        {pick("recover", "Its dead letters")}
        {pick("replay-missing", "Messages that it missed, also from before it was created")}
      </fieldset>
      <Field label="Received in">
        <select value={span} onChange={(event) => setSpan(event.currentTarget.value)}>
          {SPANS.map(([name, text]) => (
            <option key={name} value={name}>
              {text}
            </option>
          ))}
        </select>
      </Field>
      {page.value === "dashboard" && what === "recover" && (
        <Count of={of} key={span} title={title} spanMs={spanMs} />
      )}
    </FormDialog>
  )
}

interface CountProps {
  readonly of: OfEndpoint
  readonly title: string
  readonly spanMs: number
}

function Count({ of, title, spanMs }: CountProps) {
  const [after] = useState(() => new Date(Date.now() - spanMs).toISOString())
  const { data } = useResource<{ readonly count: number; readonly searchedTo: string | null }>(
    "/dead-letter/count",
    {
      app_id: of.appId,
      endpoint_id: of.endpoint.id,
      after,
      bounded: true,
    },
  )
  const isMore = data !== null && data.searchedTo !== null
  return (
    <p class="hint">
      {data === null
        ? "Counting …"
        : `${isMore ? "At least " : ""}${plural(data.count, "dead letter")} in ${title} would be sent.`}
    </p>
  )
}

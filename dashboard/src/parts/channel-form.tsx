/** Creates a channel; each kind has its fields. */
import { useState } from "preact/hooks"
import { api, pathTo } from "../api.ts"
import { Field, FormDialog } from "../ui/dialog.tsx"
import { CheckField, numberOf, TextField, textOf, wordsOf } from "../ui/forms.tsx"
import { notify } from "../ui/notices.tsx"

const KINDS = [
  ["slack", "Slack"],
  ["webhook", "Webhook"],
  ["pagerduty", "PagerDuty"],
  ["mail", "Mail"],
] as const
type Kind = (typeof KINDS)[number][0]

interface ChannelFormProps {
  readonly onClose: () => void
  readonly onSaved: () => void
}

export function ChannelForm({ onClose, onSaved }: ChannelFormProps) {
  const [kind, setKind] = useState<Kind>("slack")
  const save = async (values: FormData) => {
    const name = textOf(values, "name") ?? ""
    await api.put(pathTo("/alert-channel", name), {
      kind,
      deadLetters: values.get("deadLetters") !== null,
      ...FIELDS[kind](values),
    })
    notify("good", `The channel ${name} is saved. Test it now.`)
    onSaved()
  }
  return (
    <FormDialog title="New channel" submit="Save" onClose={onClose} onSubmit={save}>
      <TextField name="name" label="Name" required placeholder="on-call" />
      <Field label="Kind">
        <select value={kind} onChange={(event) => setKind(event.currentTarget.value as Kind)}>
          {KINDS.map(([one, title]) => (
            <option key={one} value={one}>
              {title}
            </option>
          ))}
        </select>
      </Field>
      {(kind === "slack" || kind === "webhook") && (
        <TextField key={kind} name="url" label="URL" type="url" required hint={HINTS[kind]} />
      )}
      {kind === "pagerduty" && (
        <TextField
          name="routingKey"
          label="Routing key"
          type="password"
          required
          hint="Of an integration Events API v2. It is never shown again."
        />
      )}
      {kind === "mail" && (
        <>
          <TextField name="host" label="SMTP server" required placeholder="smtp.example.com" />
          <TextField name="port" label="Port" type="number" placeholder="587" />
          <TextField name="user" label="User" />
          <TextField name="password" label="Password" type="password" />
          <TextField name="from" label="From" required />
          <TextField name="to" label="To" required hint="Addresses, separated by spaces." />
        </>
      )}
      <CheckField
        key={kind}
        name="deadLetters"
        label="Notices about dead letters, too"
        checked={kind !== "pagerduty"}
      />
    </FormDialog>
  )
}

const HINTS = {
  slack: "The incoming webhook that Slack gave you. It is never shown again.",
  webhook: "It gets signed requests, as endpoints do.",
}

const FIELDS: { readonly [K in Kind]: (values: FormData) => object } = {
  slack: (values) => ({ url: textOf(values, "url") ?? "" }),
  webhook: (values) => ({ url: textOf(values, "url") ?? "" }),
  pagerduty: (values) => ({ routingKey: textOf(values, "routingKey") ?? "" }),
  mail: (values) => {
    const port = numberOf(values, "port", "The port")
    const [user, password] = [textOf(values, "user"), textOf(values, "password")]
    return {
      host: textOf(values, "host") ?? "",
      from: textOf(values, "from") ?? "",
      to: wordsOf(values, "to"),
      ...(port === null ? {} : { port }),
      ...(user === null ? {} : { user }),
      ...(password === null ? {} : { password }),
    }
  },
}

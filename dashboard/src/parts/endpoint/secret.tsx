/** The secret that the receiver verifies signatures with. */
import { useState } from "preact/hooks"
import { api } from "../../api.ts"
import { refreshNow } from "../../refresh.ts"
import { may } from "../../session.ts"
import { Button, Card, Copy } from "../../ui/basics.tsx"
import { FormDialog } from "../../ui/dialog.tsx"
import { ChoiceField, TextField, textOf } from "../../ui/forms.tsx"
import { notify } from "../../ui/notices.tsx"
import { type OfEndpoint, pathOf } from "./context.ts"

const GRACES = [
  ["0", "at once"],
  ["3600", "after an hour"],
  ["86400", "after a day"],
  ["604800", "after a week"],
  ["2592000", "after 30 days"],
] as const

export function Secret({ of }: { readonly of: OfEndpoint }) {
  const [key, setKey] = useState<string | null>(null)
  const [isRotating, setRotating] = useState(false)
  if (!may("ViewEndpointSecret")) return null
  const show = async () => setKey((await api.get<{ readonly key: string }>(pathOf(of, "/secret"))).key)
  const rotate = async (values: FormData) => {
    await api.post(pathOf(of, "/secret/rotate"), {
      key: textOf(values, "key"),
      gracePeriodSeconds: Number(values.get("grace")),
    })
    notify("good", "A new secret signs from now on. Give it to the receiver.")
    await show()
    refreshNow()
  }
  return (
    <Card title="Secret">
      <p class="soft">The receiver verifies with it that a request is from here.</p>
      {key !== null && (
        <p class="id wrap">
          <code>{key}</code>
          <Copy text={key} label="Copy the secret" />
        </p>
      )}
      <div class="row">
        {key === null ? (
          <Button onClick={show}>Show the secret</Button>
        ) : (
          <Button onClick={() => setKey(null)}>Hide the secret</Button>
        )}
        <Button needs="ManageEndpointSecret" onClick={() => setRotating(true)}>
          Rotate
        </Button>
      </div>
      {isRotating && (
        <FormDialog
          title="Rotate the secret"
          submit="Rotate"
          onSubmit={rotate}
          onClose={() => setRotating(false)}
        >
          <ChoiceField
            name="grace"
            label="The old secret ends"
            value="86400"
            choices={GRACES}
            hint="Until then requests are signed with both, so that the receiver can change over."
          />
          <TextField name="key" label="New secret" hint="Empty: it is made for you." placeholder="whsec_…" />
        </FormDialog>
      )}
    </Card>
  )
}

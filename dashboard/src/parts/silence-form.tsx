/** Suppresses the notifications of a rule for a while. */
import { api } from "../api.ts"
import { useResource } from "../resource.ts"
import type { AlertRule } from "../types.ts"
import { FormDialog } from "../ui/dialog.tsx"
import { ChoiceField, numberOf, TextField, textOf } from "../ui/forms.tsx"
import { notify } from "../ui/notices.tsx"

interface SilenceFormProps {
  readonly rule?: string
  readonly subject?: string | null
  readonly onClose: () => void
  readonly onSaved: () => void
}

export function SilenceForm({ rule, subject, onClose, onSaved }: SilenceFormProps) {
  const { data } = useResource<{ readonly data: readonly AlertRule[] }>("/alert-rule")
  const save = async (values: FormData) => {
    await api.post("/alert-silence", {
      rule: textOf(values, "rule"),
      subject: textOf(values, "subject"),
      seconds: Math.round((numberOf(values, "hours", "The hours") ?? 0) * 3600),
      reason: textOf(values, "reason") ?? "",
    })
    notify("good", "The silence has begun.")
    onSaved()
  }
  return (
    <FormDialog title="Silence a rule" submit="Silence" onClose={onClose} onSubmit={save}>
      {rule === undefined ? (
        <ChoiceField
          name="rule"
          label="Rule"
          choices={(data?.data ?? []).map(({ id }) => [id, id] as const)}
        />
      ) : (
        <TextField name="rule" label="Rule" value={rule} required />
      )}
      <TextField
        name="subject"
        label="Subject"
        value={subject}
        hint="An endpoint's id, or an agent as APP_ID.NAME. Empty: all of the rule."
      />
      <TextField name="hours" label="Hours" type="number" value={2} required />
      <TextField name="reason" label="Reason" hint="Others read it in the list of silences." />
    </FormDialog>
  )
}

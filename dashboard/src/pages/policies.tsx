/** Retry policies. */
import { useState } from "preact/hooks"
import { api, pathTo } from "../api.ts"
import { toPolicy } from "../links.ts"
import { Schedule } from "../parts/schedule.tsx"
import { useResource } from "../resource.ts"
import { navigate } from "../router.ts"
import type { NamedPolicy } from "../types.ts"
import { Badge, Button, Card, Heading } from "../ui/basics.tsx"
import { Field, FormDialog } from "../ui/dialog.tsx"
import { objectOf, TextField, textOf } from "../ui/forms.tsx"
import { Loaded } from "../ui/loaded.tsx"

export function Policies() {
  const policies = useResource<{ readonly data: readonly NamedPolicy[] }>("/retry-policy", {}, { live: true })
  const [isCreating, setCreating] = useState(false)
  return (
    <>
      <Heading title="Policies">
        <Button kind="primary" needs="Change" onClick={() => setCreating(true)}>
          New policy
        </Button>
      </Heading>
      <p class="soft">
        A policy says when a failed delivery is tried again, when it is given up, and what protects its
        endpoint. Each endpoint has one.
      </p>
      <Loaded of={policies} lines={10}>
        {({ data }) => (
          <div class="grid">
            {data.map(({ name, preset }) => (
              <Card
                key={name}
                title={<a href={toPolicy(name)}>{name}</a>}
                aside={preset ? <Badge tone="idle">preset</Badge> : <Badge tone="info">own</Badge>}
              >
                <Schedule policy={name} brief />
              </Card>
            ))}
          </div>
        )}
      </Loaded>
      {isCreating && <PolicyForm onClose={() => setCreating(false)} onSaved={policies.reload} />}
    </>
  )
}

interface PolicyFormProps {
  /** Without it, a new one is created. */
  readonly known?: NamedPolicy
  readonly onClose: () => void
  readonly onSaved: () => void
}

const EXAMPLE = { delays: [5, 300, 1800, 7200, 18_000], maxAttempts: 6 }
/** A draft is previewed when typing pauses. */
const PAUSE_MS = 400

export function PolicyForm({ known, onClose, onSaved }: PolicyFormProps) {
  const first = JSON.stringify(known?.policy ?? EXAMPLE, null, 2)
  const [draft, setDraft] = useState<object | null>(JSON.parse(first))
  const [timer, setTimer] = useState<ReturnType<typeof setTimeout>>()
  const type = (text: string) => {
    clearTimeout(timer)
    setTimer(setTimeout(() => setDraft(objectIn(text)), PAUSE_MS))
  }
  const save = async (values: FormData) => {
    const name = known?.name ?? textOf(values, "name") ?? ""
    await api.put(pathTo("/retry-policy", name), objectOf(values, "policy", "The policy") ?? {})
    onSaved()
    if (known === undefined) navigate(toPolicy(name))
  }
  return (
    <FormDialog
      title={known === undefined ? "New policy" : `Edit ${known.name}`}
      submit="Save"
      onClose={onClose}
      onSubmit={save}
    >
      {known === undefined && <TextField name="name" label="Name" required placeholder="patient" />}
      <Field label="Policy" hint="Times are in seconds. The reference at /docs has all fields.">
        <textarea
          name="policy"
          rows={8}
          defaultValue={first}
          onInput={(event) => type(event.currentTarget.value)}
          required
        />
      </Field>
      {draft === null ? (
        <p class="hint">The text is not a JSON object yet.</p>
      ) : (
        <Schedule policy={draft} brief />
      )}
    </FormDialog>
  )
}

function objectIn(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : null
  } catch {
    return null
  }
}

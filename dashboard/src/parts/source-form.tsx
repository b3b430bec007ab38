/** Creates a source, or changes one. */
import { useState } from "preact/hooks"
import { READY_SCHEMES } from "../../../src/core/verification-schemes.ts"
import { api, pathTo } from "../api.ts"
import { toSource } from "../links.ts"
import { navigate } from "../router.ts"
import type { Source } from "../types.ts"
import { Field, FormDialog } from "../ui/dialog.tsx"
import { ApplicationField, CheckField, numberOf, objectOf, TextField, textOf } from "../ui/forms.tsx"

interface SourceFormProps {
  /** Without it, a new one is created. */
  readonly source?: Source
  readonly app?: string | null
  readonly onClose: () => void
  readonly onSaved?: () => void
}

const OTHER = "other"

export function SourceForm({ source, app = null, onClose, onSaved }: SourceFormProps) {
  const ready = READY_SCHEMES.some((one) => one === source?.verification.scheme)
  const [scheme, setScheme] = useState<string>(
    source === undefined ? "standard-webhooks" : ready ? source.verification.scheme : OTHER,
  )
  const save = async (values: FormData) => {
    const secret = textOf(values, "secret")
    const rateLimit = numberOf(values, "rateLimit", "The rate limit")
    const eventType = textOf(values, "eventType")
    const body = {
      name: textOf(values, "name") ?? "",
      description: textOf(values, "description") ?? "",
      eventType: eventType?.startsWith("{") ? objectOf(values, "eventType", "The event type") : eventType,
      verification: scheme === OTHER ? objectOf(values, "verification", "The verification") : scheme,
      enabled: values.get("enabled") !== null,
      ...(secret === null ? {} : { secret }),
      ...(rateLimit === null ? {} : { rateLimit }),
    }
    if (source !== undefined) {
      await api.patch(pathTo("/app", source.appId, "/source", source.id), body)
      return onSaved?.()
    }
    const made = await api.post<Source>(pathTo("/app", textOf(values, "app") ?? "", "/source"), body)
    navigate(toSource(made.appId, made.id))
  }
  return (
    <FormDialog
      title={source === undefined ? "New source" : `Edit ${source.name}`}
      submit={source === undefined ? "Create" : "Save"}
      onClose={onClose}
      onSubmit={save}
    >
      {source === undefined && <ApplicationField value={app} />}
      <TextField name="name" label="Name" value={source?.name} required placeholder="github" />
      <TextField name="description" label="Description" value={source?.description} />
      <Field label="Verification" hint="How the provider signs its requests.">
        <select value={scheme} onChange={(event) => setScheme(event.currentTarget.value)}>
          {READY_SCHEMES.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
          <option value={OTHER}>other, by its fields</option>
        </select>
      </Field>
      {scheme === OTHER && (
        <Field label="Fields of the verification" hint="A JSON object; /docs has all fields.">
          <textarea
            name="verification"
            defaultValue={JSON.stringify(
              source?.verification ?? { scheme: "hmac", header: "x-signature", prefix: "sha256=" },
              null,
              2,
            )}
          />
        </Field>
      )}
      {scheme !== "none" && (
        <TextField
          name="secret"
          label="Secret"
          type="password"
          hint={
            source === undefined
              ? "The provider signs with it. It is never shown again."
              : "Empty: the secret stays. A new one replaces all others at once."
          }
        />
      )}
      <TextField
        name="eventType"
        label="Event type"
        value={typeof source?.eventType === "object" ? JSON.stringify(source.eventType) : source?.eventType}
        hint='Of its messages, or where it is: {"header": "x-github-event"} or {"pointer": "/type"}. Empty: inbound.NAME.'
      />
      <TextField
        name="rateLimit"
        label="Rate limit"
        type="number"
        value={source?.rateLimit}
        hint="Requests per second. Empty: 1000."
      />
      <CheckField name="enabled" label="On: its URL takes requests" checked={source?.enabled ?? true} />
    </FormDialog>
  )
}

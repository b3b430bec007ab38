/** The form that creates and changes endpoints. A customer's session has fewer fields: the others affect other customers. */
import { api, pathTo } from "../../api.ts"
import { toEndpoint } from "../../links.ts"
import { refreshNow } from "../../refresh.ts"
import { useResource } from "../../resource.ts"
import { filterOf, navigate } from "../../router.ts"
import { may } from "../../session.ts"
import type { Endpoint, NamedPolicy } from "../../types.ts"
import { FormDialog } from "../../ui/dialog.tsx"
import {
  ApplicationField,
  CheckField,
  ChoiceField,
  numberOf,
  TextField,
  textOf,
  wordsOf,
} from "../../ui/forms.tsx"
import { notify } from "../../ui/notices.tsx"
import { EventTypeInput, eventTypesOf } from "../event-type-input.tsx"

interface CreateProps {
  /** Null: the form asks for the application. */
  readonly appId: string | null
  readonly onClose: () => void
}

export function CreateEndpoint({ appId, onClose }: CreateProps) {
  const create = async (values: FormData) => {
    const app = appId ?? textOf(values, "app")!
    const { ordered, ...fields } = fieldsOf(values)
    // Without it the policy says whether the endpoint is ordered.
    const made = await api.post<Endpoint>(pathTo("/app", app, "/endpoint"), {
      ...fields,
      ...(ordered ? { ordered } : {}),
    })
    notify(
      "good",
      may("Change")
        ? "The endpoint is created. Send it an example to see whether it answers."
        : "The endpoint is created. It gets messages from now on.",
    )
    navigate(toEndpoint(app, made.id))
  }
  return (
    <FormDialog title="Create an endpoint" submit="Create" onClose={onClose} onSubmit={create}>
      {appId === null && <ApplicationField value={filterOf("app_id")} />}
      <Fields endpoint={null} />
    </FormDialog>
  )
}

interface EditProps {
  readonly appId: string
  readonly endpoint: Endpoint
  readonly onClose: () => void
}

export function EditEndpoint({ appId, endpoint, onClose }: EditProps) {
  const save = async (values: FormData) => {
    const changes = changed(endpoint, fieldsOf(values))
    if (Object.keys(changes).length === 0) return
    await api.patch(pathTo("/app", appId, "/endpoint", endpoint.id), changes)
    notify("good", "The endpoint is changed. It holds from the next attempt.")
    refreshNow()
  }
  return (
    <FormDialog title="Edit the endpoint" submit="Save" onClose={onClose} onSubmit={save}>
      <Fields endpoint={endpoint} />
    </FormDialog>
  )
}

function Fields({ endpoint }: { readonly endpoint: Endpoint | null }) {
  return (
    <>
      <TextField
        name="url"
        label="URL"
        hint="Where the requests go: https, or http where the server allows it."
        required
        placeholder="https://example.com/webhooks"
        value={endpoint?.url}
      />
      <TextField name="description" label="Description" value={endpoint?.description} />
      <EventTypeInput chosen={endpoint?.eventTypes ?? []} />
      <TextField
        name="channels"
        label="Channels"
        hint="Separated by commas. Empty: messages of all channels."
        value={endpoint?.channels?.join(", ")}
      />
      <TextField
        name="throttleRate"
        label="Most requests in a second"
        hint="Empty: no limit."
        type="number"
        value={endpoint?.rateLimit}
      />
      {may("Change") && <OperatorFields endpoint={endpoint} />}
    </>
  )
}

/** Of a choice that changes nothing. */
const AS_IT_IS = "-as-it-is"

function OperatorFields({ endpoint }: { readonly endpoint: Endpoint | null }) {
  const { data, error } = useResource<{ readonly data: readonly NamedPolicy[] }>("/retry-policy")
  // A field that is made again loses the choice of the user.
  if (data === null && error === null) return null
  const now = endpoint?.retry ?? null
  const isUnnamed = endpoint !== null && now === null
  return (
    <>
      <TextField
        name="concurrency"
        label="Most requests at once"
        hint="Empty: it grows while requests succeed."
        type="number"
        value={endpoint?.concurrency}
      />
      <ChoiceField
        name="retry"
        label="Retry policy"
        value={isUnnamed ? AS_IT_IS : now}
        choices={[
          ...(isUnnamed ? [[AS_IT_IS, "As it is: the default, or its own"] as const] : []),
          ["", "The default"],
          ...(data?.data ?? []).map(({ name }) => [name, name] as const),
        ]}
      />
      <CheckField
        name="ordered"
        label="In order: a message waits until the one before it is delivered or given up"
        checked={endpoint?.ordered ?? false}
      />
    </>
  )
}

interface EndpointFields {
  readonly url: string
  readonly description: string
  readonly eventTypes: readonly string[] | null
  readonly channels: readonly string[] | null
  readonly throttleRate: number | null
  readonly concurrency?: number | null
  readonly retry?: string | null
  readonly ordered?: boolean
}

function fieldsOf(values: FormData): EndpointFields {
  const channels = wordsOf(values, "channels")
  const retry = values.get("retry")
  return {
    url: textOf(values, "url") ?? "",
    description: textOf(values, "description") ?? "",
    eventTypes: eventTypesOf(values),
    channels: channels.length === 0 ? null : channels,
    throttleRate: numberOf(values, "throttleRate", "The number of requests in a second"),
    ...(values.has("concurrency")
      ? {
          concurrency: numberOf(values, "concurrency", "The number of requests at once"),
          ordered: values.has("ordered"),
        }
      : {}),
    ...(retry === null || retry === AS_IT_IS ? {} : { retry: textOf(values, "retry") }),
  }
}

/** The fields that differ: the record of changes names these alone. */
function changed(endpoint: Endpoint, fields: EndpointFields): Partial<EndpointFields> {
  const before: { readonly [field: string]: unknown } = endpoint
  const isSame = (field: string, value: unknown) => {
    // Null stands for the default, and for a policy of its own, which the default replaces.
    if (field === "retry" && value === null) return false
    return textFor(before[field]) === textFor(value)
  }
  return Object.fromEntries(Object.entries(fields).filter(([field, value]) => !isSame(field, value)))
}

const textFor = (value: unknown) => JSON.stringify(Array.isArray(value) ? [...value].sort() : value)

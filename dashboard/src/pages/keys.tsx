/** API keys. */
import { useState } from "preact/hooks"
import { api, pathTo } from "../api.ts"
import { ApplicationName, useApplications } from "../parts/applications.tsx"
import { OwnerFilter, ownerQuery } from "../parts/owner-filter.tsx"
import { type List, useResource } from "../resource.ts"
import { filterOf } from "../router.ts"
import type { Key, NewKey } from "../types.ts"
import { Badge, Button, Empty, Heading, Time } from "../ui/basics.tsx"
import { ask, Dialog, FormDialog } from "../ui/dialog.tsx"
import { ApplicationField, ChoiceField, numberOf, TextField, textOf } from "../ui/forms.tsx"
import { notify } from "../ui/notices.tsx"
import { Payload } from "../ui/payload.tsx"
import { ListView } from "../ui/table.tsx"

const SCOPES = [
  ["admin", "Everything"],
  ["read", "Read only"],
  ["application", "One application"],
  ["agent", "An agent of one application"],
] as const

export function Keys() {
  const applications = useApplications()
  const [isCreating, setCreating] = useState(false)
  const [made, setMade] = useState<NewKey | null>(null)
  const list = useResource<List<Key>>(
    "/key",
    { limit: 50, order: "descending", ...ownerQuery(), iterator: filterOf("iterator") },
    { live: true },
  )
  const revoke = ({ id, name }: Key) =>
    ask({
      title: `Revoke ${name}`,
      text: <p>Requests with this key are refused at once, and the sessions that it opened end.</p>,
      action: "Revoke the key",
      kind: "danger",
      async run() {
        await api.delete(pathTo("/key", id))
        notify("good", `${name} is revoked.`)
        list.reload()
      },
    })
  const create = (
    <Button kind="primary" needs="Change" onClick={() => setCreating(true)}>
      New key
    </Button>
  )
  return (
    <>
      <Heading title="Keys">{create}</Heading>
      <OwnerFilter />
      <ListView
        list={list}
        label="Keys"
        keyOf={({ id }) => id}
        columns={[
          { title: "Name", cell: ({ name }) => name },
          { title: "Scope", cell: ({ scope }) => SCOPES.find(([one]) => one === scope)?.[1] ?? scope },
          { title: "State", cell: (key) => <State of={key} /> },
          {
            title: "Application",
            minor: true,
            cell: ({ appId }) =>
              appId === null ? (
                <span class="faint">all</span>
              ) : (
                <ApplicationName all={applications} id={appId} />
              ),
          },
          {
            title: "May",
            minor: true,
            cell: ({ capabilities }) =>
              capabilities?.join(", ") ?? <span class="faint">all of its scope</span>,
          },
          {
            title: "Last used",
            cell: ({ lastUsedAt }) =>
              lastUsedAt === null ? <span class="faint">never</span> : <Time at={lastUsedAt} />,
          },
          { title: "Created", minor: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
          {
            title: "Actions",
            cell: (key) =>
              key.revokedAt === null && (
                <Button needs="Change" kind="danger" onClick={() => revoke(key)} title={`Revoke ${key.name}`}>
                  Revoke
                </Button>
              ),
          },
        ]}
        empty={<Empty title="No keys">{create}</Empty>}
      />
      {isCreating && (
        <KeyForm
          onClose={() => setCreating(false)}
          onMade={(key) => {
            setMade(key)
            list.reload()
          }}
        />
      )}
      {made !== null && (
        <Dialog title={`The key ${made.name}`} onClose={() => setMade(null)}>
          <p>Copy it now: it is not shown again.</p>
          <Payload value={made.token} label="The key" />
        </Dialog>
      )}
    </>
  )
}

function State({ of: { revokedAt, expiresAt } }: { readonly of: Key }) {
  if (revokedAt !== null && Date.parse(revokedAt) <= Date.now()) return <Badge tone="idle">revoked</Badge>
  if (expiresAt !== null && Date.parse(expiresAt) <= Date.now()) return <Badge tone="idle">expired</Badge>
  const end = revokedAt ?? expiresAt
  return (
    <>
      <Badge tone="good">valid</Badge>
      {end !== null && (
        <span class="soft">
          {" "}
          ends <Time at={end} />
        </span>
      )}
    </>
  )
}

function KeyForm({
  onClose,
  onMade,
}: {
  readonly onClose: () => void
  readonly onMade: (key: NewKey) => void
}) {
  const create = async (values: FormData) => {
    const days = numberOf(values, "days", "The days")
    onMade(
      await api.post<NewKey>("/key", {
        name: textOf(values, "name") ?? "",
        scope: values.get("scope"),
        appId: textOf(values, "app"),
        expiresAt: days === null ? null : new Date(Date.now() + days * 86_400_000).toISOString(),
      }),
    )
  }
  return (
    <FormDialog title="New key" submit="Create" onClose={onClose} onSubmit={create}>
      <TextField name="name" label="Name" required placeholder="billing service" />
      <ChoiceField name="scope" label="Scope" value="admin" choices={SCOPES} />
      <ApplicationField required={false} />
      <TextField name="days" label="Days" type="number" hint="After this time it ends. Empty: never." />
    </FormDialog>
  )
}

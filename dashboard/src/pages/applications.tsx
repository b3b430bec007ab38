/** Applications: the customers of the operator. */
import { useState } from "preact/hooks"
import { api } from "../api.ts"
import { toApplication } from "../links.ts"
import { type List, useResource } from "../resource.ts"
import { filterOf, navigate } from "../router.ts"
import type { Application } from "../types.ts"
import { Button, Copy, Empty, Heading, Time } from "../ui/basics.tsx"
import { Field, FormDialog } from "../ui/dialog.tsx"
import { numberOf, objectOf, TextField, textOf } from "../ui/forms.tsx"
import { ListView } from "../ui/table.tsx"

export function Applications() {
  const [isCreating, setCreating] = useState(false)
  const list = useResource<List<Application>>(
    "/app",
    { limit: 50, order: "descending", iterator: filterOf("iterator") },
    { live: true },
  )
  const create = (
    <Button kind="primary" needs="Change" onClick={() => setCreating(true)}>
      New application
    </Button>
  )
  return (
    <>
      <Heading title="Applications">{create}</Heading>
      <ListView
        list={list}
        label="Applications"
        keyOf={({ id }) => id}
        hrefOf={({ id }) => toApplication(id)}
        columns={[
          { title: "Name", cell: ({ id, name }) => <a href={toApplication(id)}>{name}</a> },
          { title: "Uid", cell: ({ uid }) => (uid ? <code>{uid}</code> : <span class="faint">none</span>) },
          {
            title: "Id",
            minor: true,
            cell: ({ id }) => (
              <>
                <code>{id}</code>
                <Copy text={id} label={`Copy ${id}`} />
              </>
            ),
          },
          {
            title: "Rate limit",
            minor: true,
            align: "right",
            cell: ({ rateLimit }) => (rateLimit === null ? "none" : `${rateLimit} a second`),
          },
          { title: "Created", cell: ({ createdAt }) => <Time at={createdAt} /> },
        ]}
        empty={
          <Empty title="No applications yet">
            <p>An application is one customer: it has endpoints, and messages are sent to it.</p>
            {create}
          </Empty>
        }
      />
      {isCreating && <ApplicationForm onClose={() => setCreating(false)} />}
    </>
  )
}

interface ApplicationFormProps {
  /** Without it, a new one is created. */
  readonly application?: Application
  readonly onClose: () => void
  readonly onSaved?: () => void
}

export function ApplicationForm({ application, onClose, onSaved }: ApplicationFormProps) {
  const save = async (values: FormData) => {
    const body = {
      name: textOf(values, "name") ?? "",
      uid: textOf(values, "uid"),
      rateLimit: numberOf(values, "rateLimit", "The rate limit"),
      metadata: objectOf(values, "metadata", "The metadata") ?? {},
    }
    if (application !== undefined) {
      await api.put(toApiPath(application.id), body)
      return onSaved?.()
    }
    const made = await api.post<Application>("/app", body)
    navigate(toApplication(made.id))
  }
  return (
    <FormDialog
      title={application === undefined ? "New application" : `Edit ${application.name}`}
      submit={application === undefined ? "Create" : "Save"}
      onClose={onClose}
      onSubmit={save}
    >
      <TextField name="name" label="Name" value={application?.name} required />
      <TextField
        name="uid"
        label="Uid"
        value={application?.uid}
        hint="Your own id of this customer. The API takes it wherever it takes the id."
      />
      <TextField
        name="rateLimit"
        label="Rate limit"
        type="number"
        value={application?.rateLimit}
        hint="Requests per second to all its endpoints together. Empty: none."
      />
      <Field label="Metadata" hint="A JSON object of texts.">
        <textarea
          name="metadata"
          defaultValue={application === undefined ? "" : JSON.stringify(application.metadata, null, 2)}
        />
      </Field>
    </FormDialog>
  )
}

const toApiPath = (id: string) => `/app/${encodeURIComponent(id)}`

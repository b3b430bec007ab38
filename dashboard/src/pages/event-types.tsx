/** The event types of the organization. */
import { useState } from "preact/hooks"
import { api } from "../api.ts"
import { toEventType } from "../links.ts"
import { type List, useResource } from "../resource.ts"
import { filterOf, navigate } from "../router.ts"
import type { EventType } from "../types.ts"
import { Badge, Button, Empty, Heading, Time } from "../ui/basics.tsx"
import { Field, FormDialog } from "../ui/dialog.tsx"
import { ChoiceFilter } from "../ui/filters.tsx"
import { CheckField, objectOf, TextField, textOf, wordsOf } from "../ui/forms.tsx"
import { ListView } from "../ui/table.tsx"

export function EventTypes() {
  const [isCreating, setCreating] = useState(false)
  const list = useResource<List<EventType>>(
    "/event-type",
    { limit: 50, include_archived: filterOf("include_archived"), iterator: filterOf("iterator") },
    { live: true },
  )
  const create = (
    <Button kind="primary" needs="Change" onClick={() => setCreating(true)}>
      New event type
    </Button>
  )
  return (
    <>
      <Heading title="Event types">{create}</Heading>
      <div class="filters">
        <ChoiceFilter name="include_archived" label="Archived" all="Hidden" choices={[["true", "Shown"]]} />
      </div>
      <ListView
        list={list}
        label="Event types"
        keyOf={({ name }) => name}
        hrefOf={({ name }) => toEventType(name)}
        columns={[
          { title: "Name", cell: ({ name }) => <a href={toEventType(name)}>{name}</a> },
          { title: "Description", cell: ({ description }) => description },
          {
            title: "State",
            minor: true,
            cell: ({ archived, deprecated }) =>
              archived ? (
                <Badge tone="idle">archived</Badge>
              ) : deprecated ? (
                <Badge tone="warn">deprecated</Badge>
              ) : (
                <Badge tone="good">in use</Badge>
              ),
          },
          {
            title: "Group",
            minor: true,
            cell: ({ groupName }) => groupName ?? <span class="faint">none</span>,
          },
          { title: "Changed", minor: true, cell: ({ updatedAt }) => <Time at={updatedAt} /> },
        ]}
        empty={
          <Empty title="No event types yet">
            <p>
              Messages may have any event type. Those described here are shown to customers, with an example
              of their payload.
            </p>
            {create}
          </Empty>
        }
      />
      {isCreating && <EventTypeForm onClose={() => setCreating(false)} />}
    </>
  )
}

interface EventTypeFormProps {
  /** Without it, a new one is created. */
  readonly eventType?: EventType
  readonly onClose: () => void
  readonly onSaved?: () => void
}

export function EventTypeForm({ eventType, onClose, onSaved }: EventTypeFormProps) {
  const save = async (values: FormData) => {
    const body = {
      description: textOf(values, "description") ?? "",
      deprecated: values.get("deprecated") !== null,
      archived: values.get("archived") !== null,
      groupName: textOf(values, "groupName"),
      featureFlags: nullIfEmpty(wordsOf(values, "featureFlags")),
      schemas: objectOf(values, "schemas", "The schemas"),
    }
    if (eventType !== undefined) {
      await api.put(`/event-type/${encodeURIComponent(eventType.name)}`, body)
      return onSaved?.()
    }
    const made = await api.post<EventType>("/event-type", { name: textOf(values, "name") ?? "", ...body })
    navigate(toEventType(made.name))
  }
  return (
    <FormDialog
      title={eventType === undefined ? "New event type" : `Edit ${eventType.name}`}
      submit={eventType === undefined ? "Create" : "Save"}
      onClose={onClose}
      onSubmit={save}
    >
      {eventType === undefined && (
        <TextField
          name="name"
          label="Name"
          required
          placeholder="invoice.paid"
          hint="It cannot be changed."
        />
      )}
      <TextField name="description" label="Description" value={eventType?.description} required />
      <TextField name="groupName" label="Group" value={eventType?.groupName} />
      <TextField
        name="featureFlags"
        label="Feature flags"
        value={eventType?.featureFlags?.join(" ")}
        hint="Only portals with one of these flags show it. Empty: all."
      />
      <Field label="JSON schemas" hint='By version, such as {"1": {"type": "object"}}. May be empty.'>
        <textarea
          name="schemas"
          defaultValue={eventType?.schemas ? JSON.stringify(eventType.schemas, null, 2) : ""}
        />
      </Field>
      <CheckField
        name="deprecated"
        label="Deprecated: customers see that it will end"
        checked={eventType?.deprecated ?? false}
      />
      <CheckField
        name="archived"
        label="Archived: hidden from lists"
        checked={eventType?.archived ?? false}
      />
    </FormDialog>
  )
}

function nullIfEmpty(list: string[]): string[] | null {
  return list.length === 0 ? null : list
}

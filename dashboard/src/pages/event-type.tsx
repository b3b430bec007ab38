/** One event type, with the schemas of its payload. */
import { useState } from "preact/hooks"
import { api, page, pathTo, pathWith } from "../api.ts"
import { Above, Detail, type ListLink } from "../parts/detail.tsx"
import { useResource } from "../resource.ts"
import type { PageProps } from "../routed.tsx"
import { navigate } from "../router.ts"
import type { EventType } from "../types.ts"
import { Badge, Button, Card, Empty, Fact, Facts, Heading, Time } from "../ui/basics.tsx"
import { ask } from "../ui/dialog.tsx"
import { notify } from "../ui/notices.tsx"
import { Payload } from "../ui/payload.tsx"
import { EventTypeForm } from "./event-types.tsx"

export function EventTypePage({ params }: PageProps) {
  const path = pathTo("/event-type", params.name!)
  const found = useResource<EventType>(path, {}, { live: true })
  const list = {
    href: page.value === "portal" ? "/portal/event-types" : "/event-types",
    title: "Event types",
  }
  return (
    <Detail
      of={found}
      what="event type"
      by="name"
      why="It may have been deleted. Messages of this type are still accepted and sent."
      list={list}
    >
      {(data) => <Shown data={data} path={path} list={list} reload={found.reload} />}
    </Detail>
  )
}

interface ShownProps {
  readonly data: EventType
  /** In the API. */
  readonly path: string
  readonly list: ListLink
  readonly reload: () => void
}

function Shown({ data, path, list, reload }: ShownProps) {
  const [isEditing, setEditing] = useState(false)
  const remove = () =>
    ask({
      title: `Delete ${data.name}`,
      text: (
        <p>Its description and schemas are deleted. Messages of this type are still accepted and sent.</p>
      ),
      action: "Delete the event type",
      kind: "danger",
      async run() {
        await api.delete(path, { expunge: true })
        notify("good", `${data.name} is deleted.`)
        navigate(list.href)
      },
    })
  const versions = Object.entries(data.schemas ?? {})
  return (
    <>
      <Heading title={data.name} above={<Above list={list} />}>
        <Button needs="Change" onClick={() => setEditing(true)}>
          Edit
        </Button>
        <Button needs="Change" kind="danger" onClick={remove}>
          Delete
        </Button>
      </Heading>
      <Card>
        <p>{data.description}</p>
        <Facts>
          <Fact name="State">
            {data.archived ? (
              <Badge tone="idle">archived</Badge>
            ) : data.deprecated ? (
              <Badge tone="warn">deprecated</Badge>
            ) : (
              <Badge tone="good">in use</Badge>
            )}
          </Fact>
          <Fact name="Group">{data.groupName ?? "none"}</Fact>
          <Fact name="Feature flags">{data.featureFlags?.join(", ") ?? "none"}</Fact>
          <Fact name="Changed">
            <Time at={data.updatedAt} />
          </Fact>
        </Facts>
        {page.value === "dashboard" && (
          <p>
            <a href={pathWith("/deliveries", { event_types: data.name })}>Deliveries of this type</a>
          </p>
        )}
      </Card>
      {versions.length === 0 ? (
        <Empty title="No schema">
          <p>A JSON schema tells customers what the payload contains, and makes its example.</p>
        </Empty>
      ) : (
        versions.map(([version, schema]) => (
          <Card key={version} title={`Schema, version ${version}`}>
            <Payload value={schema} label={`The schema, version ${version}`} />
          </Card>
        ))
      )}
      {isEditing && <EventTypeForm eventType={data} onClose={() => setEditing(false)} onSaved={reload} />}
    </>
  )
}

/** One source: its URL, the requests it accepted, and those it refused, with the cause. */
import { useState } from "preact/hooks"
import { api, pathTo, pathWith } from "../api.ts"
import { exactNumber, words } from "../format.ts"
import { ApplicationLink } from "../parts/applications.tsx"
import { Above, Detail } from "../parts/detail.tsx"
import { SourceForm } from "../parts/source-form.tsx"
import { useResource } from "../resource.ts"
import type { PageProps } from "../routed.tsx"
import { navigate } from "../router.ts"
import type { Source, SourceActivity } from "../types.ts"
import { Badge, Button, Card, Empty, Fact, Facts, Figure, Heading, Time } from "../ui/basics.tsx"
import { ask, FormDialog } from "../ui/dialog.tsx"
import { numberOf, TextField, textOf } from "../ui/forms.tsx"
import { Loaded } from "../ui/loaded.tsx"
import { notify } from "../ui/notices.tsx"
import { Payload } from "../ui/payload.tsx"
import { Table } from "../ui/table.tsx"

const LIST = { href: "/sources", title: "Sources" }

export function SourcePage({ params }: PageProps) {
  const path = pathTo("/app", params.app!, "/source", params.id!)
  const found = useResource<Source>(path, {}, { live: true })
  return (
    <Detail
      of={found}
      what="source"
      why="It may have been deleted. The messages that it took in are kept."
      list={LIST}
    >
      {(data) => <Shown data={data} path={path} reload={found.reload} />}
    </Detail>
  )
}

interface ShownProps {
  readonly data: Source
  /** In the API. */
  readonly path: string
  readonly reload: () => void
}

function Shown({ data, path, reload }: ShownProps) {
  const [dialog, setDialog] = useState<"edit" | "rotate" | null>(null)
  const remove = () =>
    ask({
      title: `Delete ${data.name}`,
      text: <p>Its URL ends at once: the provider's requests are answered with 404. Its messages stay.</p>,
      action: "Delete the source",
      kind: "danger",
      async run() {
        await api.delete(path)
        notify("good", `${data.name} is deleted.`)
        navigate("/sources")
      },
    })
  const close = () => setDialog(null)
  return (
    <>
      <Heading title={data.name} above={<Above list={LIST} />}>
        <Button needs="Change" onClick={() => setDialog("edit")}>
          Edit
        </Button>
        <Button needs="Change" onClick={() => setDialog("rotate")}>
          Rotate the secret
        </Button>
        <Button needs="Change" kind="danger" onClick={remove}>
          Delete
        </Button>
      </Heading>
      <Card title="URL" aside="The provider is given it">
        {data.url === undefined ? (
          <p class="soft">Only those who may manage endpoints see it: whoever has it can send.</p>
        ) : (
          <Payload value={data.url} label="The URL" />
        )}
      </Card>
      <Card>
        {data.description !== "" && <p>{data.description}</p>}
        <Facts>
          <Fact name="State">
            <Badge tone={data.enabled ? "good" : "idle"}>{data.enabled ? "on" : "off"}</Badge>
          </Fact>
          <Fact name="Application">
            <ApplicationLink id={data.appId} />
          </Fact>
          <Fact name="Verification">{data.verification.scheme}</Fact>
          <Fact name="Secrets">
            {data.secrets.count}
            {data.secrets.overlapEndsAt !== null && (
              <>
                , the old one until <Time at={data.secrets.overlapEndsAt} />
              </>
            )}
          </Fact>
          <Fact name="Event type">
            <code>{eventTypeOf(data)}</code>
          </Fact>
          <Fact name="Handshake">{data.handshake?.kind ?? "none"}</Fact>
          <Fact name="Rate limit">{data.rateLimit} a second</Fact>
        </Facts>
        <p>
          <a href={pathWith("/messages", { app_id: data.appId })}>Messages of the application</a>
        </p>
      </Card>
      <Activity path={`${path}/activity`} />
      {dialog === "edit" && <SourceForm source={data} onClose={close} onSaved={reload} />}
      {dialog === "rotate" && <RotateForm path={path} onClose={close} onSaved={reload} />}
    </>
  )
}

function eventTypeOf({ eventType, name }: Source): string {
  if (eventType === null) return `inbound.${name}`
  return typeof eventType === "string" ? eventType : JSON.stringify(eventType)
}

function Activity({ path }: { readonly path: string }) {
  const activity = useResource<SourceActivity>(path, {}, { live: true })
  return <Loaded of={activity}>{(data) => <Counted activity={data} />}</Loaded>
}

function Counted({ activity: data }: { readonly activity: SourceActivity }) {
  const refused = Object.entries(data.refused)
  return (
    <>
      <div class="figures">
        <Figure label="accepted">{exactNumber(data.accepted)}</Figure>
        <Figure label="duplicates">{exactNumber(data.duplicates)}</Figure>
        <Figure label="handshakes">{exactNumber(data.handshakes)}</Figure>
        {refused.map(([reason, count]) => (
          <Figure key={reason} label={`refused: ${words(reason)}`} tone="warn">
            {exactNumber(count)}
          </Figure>
        ))}
      </div>
      <Card
        title="Refused lately"
        aside={
          <>
            last accepted <Time at={data.lastAcceptedAt} />
          </>
        }
      >
        {data.recent.length === 0 ? (
          <Empty title="Nothing was refused" />
        ) : (
          <Table
            label="Refused requests"
            rows={data.recent}
            keyOf={({ at, path: one, reason }) => `${at} ${one} ${reason}`}
            columns={[
              { title: "When", cell: ({ at }) => <Time at={at} /> },
              {
                title: "Why",
                cell: ({ reason, detail }) => (
                  <>
                    {words(reason)}
                    {detail !== null && <span class="soft"> ({detail})</span>}
                  </>
                ),
              },
              {
                title: "Request",
                cell: ({ method, path: one }) => (
                  <code>
                    {method} {one || "/"}
                  </code>
                ),
              },
              { title: "From", minor: true, cell: ({ remoteAddress }) => remoteAddress ?? "unknown" },
              { title: "User agent", minor: true, cell: ({ userAgent }) => userAgent ?? "none" },
            ]}
          />
        )}
      </Card>
    </>
  )
}

interface RotateFormProps {
  readonly path: string
  readonly onClose: () => void
  readonly onSaved: () => void
}

function RotateForm({ path, onClose, onSaved }: RotateFormProps) {
  const save = async (values: FormData) => {
    await api.post(`${path}/secret/rotate`, {
      secret: textOf(values, "secret") ?? "",
      gracePeriodSeconds: Math.round((numberOf(values, "hours", "The hours") ?? 24) * 3600),
    })
    notify("good", "Requests are verified with the new secret, and with the old one until its time ends.")
    onSaved()
  }
  return (
    <FormDialog title="Rotate the secret" submit="Rotate" onClose={onClose} onSubmit={save}>
      <TextField name="secret" label="New secret" type="password" required hint="As the provider has it." />
      <TextField
        name="hours"
        label="Hours"
        type="number"
        value={24}
        hint="How long the old secret is accepted, too."
      />
    </FormDialog>
  )
}

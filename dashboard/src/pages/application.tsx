/** One application, and the access of its customer to the portal. */
import { useState } from "preact/hooks"
import { api, pathTo, pathWith } from "../api.ts"
import { Above, Detail } from "../parts/detail.tsx"
import { useResource } from "../resource.ts"
import type { PageProps } from "../routed.tsx"
import { navigate } from "../router.ts"
import { type Capability, may } from "../session.ts"
import type { Application } from "../types.ts"
import { Button, Card, Copy, Fact, Facts, Heading, Time } from "../ui/basics.tsx"
import { ask, Dialog, FormDialog } from "../ui/dialog.tsx"
import { CheckField, numberOf, TextField, textOf, wordsOf } from "../ui/forms.tsx"
import { notify } from "../ui/notices.tsx"
import { Payload } from "../ui/payload.tsx"
import { ApplicationForm } from "./applications.tsx"

const LIST = { href: "/applications", title: "Applications" }

export function ApplicationPage({ params }: PageProps) {
  const path = pathTo("/app", params.id!)
  const found = useResource<Application>(path, {}, { live: true })
  return (
    <Detail of={found} what="application" why="It may have been deleted." list={LIST}>
      {(data) => <Shown data={data} path={path} reload={found.reload} />}
    </Detail>
  )
}

interface ShownProps {
  readonly data: Application
  /** In the API. */
  readonly path: string
  readonly reload: () => void
}

function Shown({ data, path, reload }: ShownProps) {
  const [isEditing, setEditing] = useState(false)
  const remove = () =>
    ask({
      title: `Delete ${data.name}`,
      text: (
        <p>
          Its endpoints, sources and keys end at once. Its messages, attempts and dead letters are deleted in
          the background. This cannot be undone.
        </p>
      ),
      action: "Delete the application",
      kind: "danger",
      async run() {
        await api.delete(path)
        notify("good", `${data.name} is deleted.`)
        navigate("/applications")
      },
    })
  return (
    <>
      <Heading title={data.name} above={<Above list={LIST} />}>
        <Button needs="Change" onClick={() => setEditing(true)}>
          Edit
        </Button>
        <Button needs="Change" kind="danger" onClick={remove}>
          Delete
        </Button>
      </Heading>
      <Card>
        <Facts>
          <Fact name="Id">
            <code>{data.id}</code>
            <Copy text={data.id} label="Copy the id" />
          </Fact>
          <Fact name="Uid">{data.uid ? <code>{data.uid}</code> : "none"}</Fact>
          <Fact name="Rate limit">{data.rateLimit === null ? "none" : `${data.rateLimit} a second`}</Fact>
          <Fact name="Created">
            <Time at={data.createdAt} />
          </Fact>
          <Fact name="Changed">
            <Time at={data.updatedAt} />
          </Fact>
        </Facts>
      </Card>
      <Card title="Its pages">
        <ul class="row">
          {LINKS.map(([to, title]) => (
            <li key={to}>
              <a class="button" href={pathWith(to, { app_id: data.id })}>
                {title}
              </a>
            </li>
          ))}
        </ul>
      </Card>
      <Portal application={data} />
      {Object.keys(data.metadata).length > 0 && (
        <Card title="Metadata">
          <Payload value={data.metadata} label="The metadata" />
        </Card>
      )}
      {isEditing && <ApplicationForm application={data} onClose={() => setEditing(false)} onSaved={reload} />}
    </>
  )
}

const LINKS = [
  ["/endpoints", "Endpoints"],
  ["/messages", "Messages"],
  ["/deliveries", "Deliveries"],
  ["/dead-letters", "Dead letters"],
  ["/sources", "Sources"],
  ["/agents", "Agents"],
  ["/sessions", "Sessions"],
  ["/changes", "Changes"],
] as const

const CAPABILITIES: readonly (readonly [Capability, string])[] = [
  ["ViewBase", "See endpoints, event types, messages and attempts"],
  ["ManageEndpoint", "Create, change and delete endpoints"],
  ["ViewEndpointSecret", "See the secrets of endpoints"],
  ["ManageEndpointSecret", "See and rotate the secrets of endpoints"],
  ["CreateAttempts", "Send messages again"],
]

interface Access {
  readonly url: string
  readonly token: string
}

function Portal({ application }: { readonly application: Application }) {
  const [isAsking, setAsking] = useState(false)
  const [access, setAccess] = useState<Access | null>(null)
  if (!may("Change")) return null
  const create = async (values: FormData) => {
    const capabilities = CAPABILITIES.map(([name]) => name).filter((name) => values.get(name) !== null)
    if (capabilities.length === 0) throw new Error("Choose at least one capability.")
    setAccess(
      await api.post<Access>(pathTo("/auth/app-portal-access", application.id), {
        capabilities,
        featureFlags: wordsOf(values, "featureFlags"),
        expiry: (numberOf(values, "hours", "The time") ?? 1) * 3600,
        sessionId: textOf(values, "sessionId"),
      }),
    )
  }
  const expireAll = () =>
    ask({
      title: "End all access of this customer",
      text: <p>All portal links, tokens and sessions of {application.name} end at once.</p>,
      action: "End all access",
      kind: "danger",
      async run() {
        await api.post(pathTo("/auth/app", application.id, "/expire-all"), {})
        notify("good", `All portal access of ${application.name} has ended.`)
      },
    })
  return (
    <Card title="Customer's portal">
      <p class="soft">
        A link to a page where this customer manages endpoints and looks at messages. It works once, and opens
        a session of this application alone.
      </p>
      <div class="row">
        <Button kind="primary" needs="Change" onClick={() => setAsking(true)}>
          Create a link
        </Button>
        <Button kind="danger" needs="Change" onClick={expireAll}>
          End all access
        </Button>
      </div>
      {isAsking && (
        <FormDialog
          title="Create a portal link"
          submit="Create"
          onClose={() => setAsking(false)}
          onSubmit={create}
        >
          <fieldset>
            <legend>Capabilities</legend>
            {CAPABILITIES.map(([name, title]) => (
              <CheckField key={name} name={name} label={title} checked />
            ))}
          </fieldset>
          <TextField
            name="hours"
            label="Hours"
            type="number"
            value={1}
            hint="After this time the link and its session end; at most 168."
          />
          <TextField
            name="featureFlags"
            label="Feature flags"
            hint="Event types behind these flags are shown, too. Separate them by spaces."
          />
          <TextField
            name="sessionId"
            label="Session id"
            hint="Your own id of the person's session; may be empty."
          />
        </FormDialog>
      )}
      {access !== null && (
        <Dialog title="The portal link" onClose={() => setAccess(null)}>
          <p>Give this link to the customer. It works once and is not shown again.</p>
          <Payload value={access.url} label="The link" />
          <p>The token in it is also a key of this application for the API:</p>
          <Payload value={access.token} label="The token" />
        </Dialog>
      )}
    </Card>
  )
}

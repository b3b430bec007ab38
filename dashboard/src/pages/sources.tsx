/** Sources: URLs that take webhooks in from providers. */
import { useState } from "preact/hooks"
import { pathTo } from "../api.ts"
import { toSource } from "../links.ts"
import { ApplicationName, useApplications } from "../parts/applications.tsx"
import { SourceForm } from "../parts/source-form.tsx"
import { type List, useResource } from "../resource.ts"
import { filterOf } from "../router.ts"
import type { Source } from "../types.ts"
import { Badge, Button, Empty, Heading, Time } from "../ui/basics.tsx"
import { ApplicationFilter } from "../ui/forms.tsx"
import { ListView } from "../ui/table.tsx"

export function Sources() {
  const applications = useApplications()
  const app = filterOf("app_id")
  const [isCreating, setCreating] = useState(false)
  const list = useResource<List<Source>>(
    app === null ? "/source" : pathTo("/app", app, "/source"),
    { limit: 50, order: "descending", iterator: filterOf("iterator") },
    { live: true },
  )
  const create = (
    <Button kind="primary" needs="Change" onClick={() => setCreating(true)}>
      New source
    </Button>
  )
  return (
    <>
      <Heading title="Sources">{create}</Heading>
      <div class="filters">
        <ApplicationFilter />
      </div>
      <ListView
        list={list}
        label="Sources"
        keyOf={({ id }) => id}
        hrefOf={({ appId, id }) => toSource(appId, id)}
        columns={[
          { title: "Name", cell: ({ appId, id, name }) => <a href={toSource(appId, id)}>{name}</a> },
          {
            title: "Verification",
            cell: ({ verification: { scheme } }) =>
              scheme === "none" ? <Badge tone="warn">none</Badge> : scheme,
          },
          {
            title: "Application",
            minor: true,
            cell: ({ appId }) => <ApplicationName all={applications} id={appId} />,
          },
          {
            title: "State",
            cell: ({ enabled }) => <Badge tone={enabled ? "good" : "idle"}>{enabled ? "on" : "off"}</Badge>,
          },
          { title: "Description", minor: true, cell: ({ description }) => description },
          { title: "Created", minor: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
        ]}
        empty={
          <Empty title="No sources">
            <p>
              A source is a URL that a provider such as GitHub or Stripe is given. What it sends is verified,
              stored, and delivered to the application's endpoints.
            </p>
            {create}
          </Empty>
        }
      />
      {isCreating && <SourceForm app={app} onClose={() => setCreating(false)} />}
    </>
  )
}

/** Browsers that are signed in to the dashboard or to a portal. */
import { api, pathTo } from "../api.ts"
import { words } from "../format.ts"
import { ApplicationName, useApplications } from "../parts/applications.tsx"
import { OwnerFilter, ownerQuery } from "../parts/owner-filter.tsx"
import { type List, useResource } from "../resource.ts"
import { filterOf } from "../router.ts"
import { session } from "../session.ts"
import type { BrowserSession } from "../types.ts"
import { Badge, Button, Empty, Heading, Time } from "../ui/basics.tsx"
import { ask } from "../ui/dialog.tsx"
import { notify } from "../ui/notices.tsx"
import { ListView } from "../ui/table.tsx"

export function Sessions() {
  const applications = useApplications()
  const list = useResource<List<BrowserSession>>(
    "/session",
    { limit: 50, order: "descending", ...ownerQuery(), iterator: filterOf("iterator") },
    { live: true },
  )
  const state = session.value
  const own = state.kind === "signed-in" ? state.who.browserSession : null
  const end = ({ id, name }: BrowserSession) =>
    ask({
      title: "End a session",
      text: (
        <p>
          The browser that {name} opened is signed out at once.
          {id === own && " It is yours."}
        </p>
      ),
      action: "End the session",
      kind: "danger",
      async run() {
        await api.delete(pathTo("/session", id))
        notify("good", "The session has ended.")
        list.reload()
      },
    })
  return (
    <>
      <Heading title="Sessions" />
      <OwnerFilter />
      <ListView
        list={list}
        label="Sessions"
        keyOf={({ id }) => id}
        columns={[
          {
            title: "Opened by",
            cell: ({ id, name }) => (
              <>
                {name} {id === own && <Badge tone="info">this one</Badge>}
              </>
            ),
          },
          { title: "Page", cell: ({ page }) => page },
          {
            title: "May",
            minor: true,
            cell: ({ scope, capabilities }) => capabilities?.join(", ") ?? words(scope),
          },
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
          { title: "Last used", cell: ({ lastUsedAt }) => <Time at={lastUsedAt} /> },
          {
            title: "Ends",
            cell: ({ expiresAt, revokedAt }) =>
              revokedAt === null ? <Time at={expiresAt} /> : <Badge tone="idle">ended</Badge>,
          },
          {
            title: "Actions",
            cell: (one) =>
              one.revokedAt === null && (
                <Button
                  needs="Change"
                  kind="danger"
                  onClick={() => end(one)}
                  title={`End the session of ${one.name}`}
                >
                  End
                </Button>
              ),
          },
        ]}
        empty={
          <Empty title="No sessions">
            <p>Nobody is signed in with this filter.</p>
          </Empty>
        }
      />
    </>
  )
}

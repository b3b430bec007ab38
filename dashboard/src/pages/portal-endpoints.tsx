/** The endpoints of the customer whose portal this is. */
import { useState } from "preact/hooks"
import { pathTo } from "../api.ts"
import { CreateEndpoint } from "../parts/endpoint/form.tsx"
import { EndpointList } from "../parts/endpoint/list.tsx"
import { EndpointView } from "../parts/endpoint/view.tsx"
import type { PageProps } from "../routed.tsx"
import { may, session } from "../session.ts"
import { Button, Empty, Heading } from "../ui/basics.tsx"

/** The application of the session; null for a session that is not of a portal. */
function portalApplication(): string | null {
  const state = session.value
  return state.kind === "signed-in" ? state.who.appId : null
}

export function PortalEndpoints() {
  const appId = portalApplication()
  const [isCreating, setCreating] = useState(false)
  if (appId === null) return <NotAllowed />
  return (
    <>
      <Heading title="Endpoints">
        <Button kind="primary" needs="ManageEndpoint" onClick={() => setCreating(true)}>
          Create an endpoint
        </Button>
      </Heading>
      <EndpointList
        path={pathTo("/app", appId, "/endpoint-health")}
        empty={
          <Empty title="No endpoints yet.">
            <p>
              An endpoint is a URL of yours that webhooks are sent to.
              {may("ManageEndpoint") && " Create one."}
            </p>
          </Empty>
        }
      />
      {isCreating && <CreateEndpoint appId={appId} onClose={() => setCreating(false)} />}
    </>
  )
}

export function PortalEndpoint({ params: { id = "" } }: PageProps) {
  const appId = portalApplication()
  return appId === null ? <NotAllowed /> : <EndpointView appId={appId} id={id} />
}

function NotAllowed() {
  return (
    <>
      <Heading title="Endpoints" />
      <Empty title="This session does not show endpoints.">
        <p>Open the webhook settings again in the application that sent you here.</p>
      </Empty>
    </>
  )
}

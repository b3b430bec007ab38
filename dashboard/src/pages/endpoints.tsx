/** The endpoints of all applications, by health. */
import { useState } from "preact/hooks"
import { pathTo } from "../api.ts"
import { ApplicationName, useApplications } from "../parts/applications.tsx"
import { CreateEndpoint } from "../parts/endpoint/form.tsx"
import { EndpointList } from "../parts/endpoint/list.tsx"
import { HEALTH_STATES, healthWord } from "../parts/health.tsx"
import { filterOf } from "../router.ts"
import { Button, Empty, Heading } from "../ui/basics.tsx"
import { ChoiceFilter } from "../ui/filters.tsx"
import { ApplicationFilter } from "../ui/forms.tsx"

/** The states of health that one choice of the filter asks for: every endpoint that delivers less than it should. */
const TROUBLED = ["degraded", "failing", "open", "offline", "disabled"]

export function Endpoints() {
  const applications = useApplications()
  const [isCreating, setCreating] = useState(false)
  const [app, health] = [filterOf("app_id"), filterOf("health")]
  const states = health === "troubled" ? TROUBLED : health
  const hasApplications = applications.data === null || applications.data.data.length > 0
  return (
    <>
      <Heading title="Endpoints">
        {hasApplications && (
          <Button kind="primary" needs="Change" onClick={() => setCreating(true)}>
            Create an endpoint
          </Button>
        )}
      </Heading>
      <div class="filters">
        <ApplicationFilter />
        <ChoiceFilter
          name="health"
          label="Health"
          choices={[
            ["troubled", "in trouble"],
            ...HEALTH_STATES.map((state) => [state, healthWord(state)] as const),
          ]}
        />
      </div>
      <EndpointList
        path={app === null ? "/endpoint-health" : pathTo("/app", app, "/endpoint-health")}
        states={states}
        application={{
          title: "Application",
          minor: true,
          cell: ({ appId }) => <ApplicationName all={applications} id={appId} />,
        }}
        empty={
          <Empty title={health === null ? "No endpoints yet" : "No endpoint has this health"}>
            <p>
              {!hasApplications ? (
                <>
                  An endpoint belongs to an application. <a href="/applications">Create an application</a>{" "}
                  first.
                </>
              ) : health === null ? (
                "An endpoint is a URL that webhooks are sent to. Create one."
              ) : (
                <a href="/endpoints">Show all endpoints</a>
              )}
            </p>
          </Empty>
        }
      />
      {isCreating && <CreateEndpoint appId={null} onClose={() => setCreating(false)} />}
    </>
  )
}

/** Agents: programs behind a firewall that connect outward and take deliveries. */
import { pathTo } from "../api.ts"
import { number } from "../format.ts"
import { toAgent } from "../links.ts"
import { ApplicationName, useApplications } from "../parts/applications.tsx"
import { type List, useResource } from "../resource.ts"
import { filterOf } from "../router.ts"
import type { Agent } from "../types.ts"
import { Badge, Empty, Heading, Time } from "../ui/basics.tsx"
import { ApplicationFilter } from "../ui/forms.tsx"
import { ListView } from "../ui/table.tsx"

export function Agents() {
  const applications = useApplications()
  const app = filterOf("app_id")
  const list = useResource<List<Agent>>(
    app === null ? "/agent" : pathTo("/app", app, "/agent"),
    { limit: 50, iterator: filterOf("iterator") },
    { live: true },
  )
  return (
    <>
      <Heading title="Agents" />
      <div class="filters">
        <ApplicationFilter />
      </div>
      <ListView
        list={list}
        label="Agents"
        keyOf={({ appId, name }) => `${appId} ${name}`}
        hrefOf={({ appId, name }) => toAgent(appId, name)}
        columns={[
          { title: "Name", cell: ({ appId, name }) => <a href={toAgent(appId, name)}>{name}</a> },
          { title: "State", cell: (agent) => <AgentState agent={agent} /> },
          {
            title: "Application",
            minor: true,
            cell: ({ appId }) => <ApplicationName all={applications} id={appId} />,
          },
          {
            title: "Version",
            minor: true,
            cell: ({ version }) => version ?? <span class="faint">none</span>,
          },
          { title: "In flight", align: "right", cell: ({ inFlight }) => number(inFlight) },
          { title: "Endpoints", align: "right", cell: ({ endpoints }) => number(endpoints.length) },
        ]}
        empty={
          <Empty title="No agents">
            <p>
              An agent takes webhooks to a program behind a firewall. Give an endpoint the URL{" "}
              <code>relay://NAME</code> and run <code>posthorn agent</code> there.
            </p>
          </Empty>
        }
      />
    </>
  )
}

export function AgentState({ agent: { connected, connectedSince, lastSeenAt } }: { readonly agent: Agent }) {
  if (connected)
    return (
      <>
        <Badge tone="good">connected</Badge> <Time at={connectedSince} />
      </>
    )
  if (lastSeenAt === null) return <Badge tone="warn">never connected</Badge>
  return (
    <>
      <Badge tone="bad">absent</Badge> last seen <Time at={lastSeenAt} />
    </>
  )
}

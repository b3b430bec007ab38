/** One agent. */
import { pathTo, pathWith } from "../api.ts"
import { number } from "../format.ts"
import { toEndpoint } from "../links.ts"
import { ApplicationLink } from "../parts/applications.tsx"
import { Above, Detail } from "../parts/detail.tsx"
import { useResource } from "../resource.ts"
import type { PageProps } from "../routed.tsx"
import type { Agent } from "../types.ts"
import { Card, Empty, Fact, Facts, Heading, Time } from "../ui/basics.tsx"
import { AgentState } from "./agents.tsx"

const LIST = { href: "/agents", title: "Agents" }

export function AgentPage({ params }: PageProps) {
  const path = pathTo("/app", params.app!, "/agent", params.name!)
  const found = useResource<Agent>(path, {}, { live: true })
  return (
    <Detail
      of={found}
      what="agent"
      by="name"
      why="An agent is known while an endpoint has its URL, and for 30 days after its last connection."
      list={LIST}
    >
      {(data) => (
        <>
          <Heading title={data.name} above={<Above list={LIST} />} />
          <Card>
            <Facts>
              <Fact name="State">
                <AgentState agent={data} />
              </Fact>
              <Fact name="Application">
                <ApplicationLink id={data.appId} />
              </Fact>
              <Fact name="Version">{data.version ?? "none"}</Fact>
              <Fact name="In flight">{number(data.inFlight)}</Fact>
              <Fact name="Last seen">
                <Time at={data.lastSeenAt} />
              </Fact>
            </Facts>
          </Card>
          <Card title="Endpoints" aside={`with the URL relay://${data.name}`}>
            {data.endpoints.length === 0 ? (
              <Empty title="No endpoint leads to this agent">
                <p>
                  Give an endpoint the URL <code>relay://{data.name}</code>.
                </p>
              </Empty>
            ) : (
              <ul>
                {data.endpoints.map((id) => (
                  <li key={id}>
                    <a href={toEndpoint(data.appId, id)}>{id}</a>,{" "}
                    <a
                      href={pathWith("/deliveries", {
                        app_id: data.appId,
                        endpoint_id: id,
                        status: "pending",
                      })}
                    >
                      what waits
                    </a>
                  </li>
                ))}
              </ul>
            )}
          </Card>
        </>
      )}
    </Detail>
  )
}

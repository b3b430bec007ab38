/** One endpoint: its health, waiting deliveries, configuration and actions. */
import { useState } from "preact/hooks"
import { page, pathTo } from "../../api.ts"
import { toEndpoints, toPolicy } from "../../links.ts"
import { useResource } from "../../resource.ts"
import type { Endpoint, EndpointHealth } from "../../types.ts"
import { Card, Fact, Facts, Heading, Id, Time } from "../../ui/basics.tsx"
import { ApplicationLink } from "../applications.tsx"
import { ChangeList } from "../changes.tsx"
import { Detail } from "../detail.tsx"
import { Schedule } from "../schedule.tsx"
import { Actions } from "./actions.tsx"
import type { OfEndpoint } from "./context.ts"
import { ExampleAnswer } from "./example.tsx"
import { Headers } from "./headers.tsx"
import { RecentAttempts } from "./recent.tsx"
import { Secret } from "./secret.tsx"
import { Series } from "./series.tsx"
import { State } from "./state.tsx"
import { Waiting } from "./waiting.tsx"

interface EndpointViewProps {
  readonly appId: string
  readonly id: string
}

export function EndpointView({ appId, id }: EndpointViewProps) {
  const path = pathTo("/app", appId, "/endpoint", id)
  const found = useResource<Endpoint>(path, {}, { live: true })
  const health = useResource<EndpointHealth>(`${path}/health`, {}, { live: true })
  return (
    <Detail
      of={found}
      what="endpoint"
      why="It may have been deleted. What was sent to it is kept until its retention ends."
      list={{ href: toEndpoints(), title: "Endpoints" }}
    >
      {(endpoint) => <Shown of={{ appId, endpoint }} health={health} />}
    </Detail>
  )
}

interface ShownProps {
  readonly of: OfEndpoint
  readonly health: Parameters<typeof State>[0]["health"]
}

function Shown({ of, health }: ShownProps) {
  const [example, setExample] = useState<string | null>(null)
  const { appId, endpoint } = of
  const isOperators = page.value === "dashboard"
  return (
    <>
      <Heading title={endpoint.url} above={<a href={toEndpoints()}>Endpoints</a>}>
        <Actions of={of} onExample={setExample} />
      </Heading>
      {endpoint.description !== "" && <p class="soft">{endpoint.description}</p>}
      {example !== null && (
        <ExampleAnswer key={example} of={of} messageId={example} onClose={() => setExample(null)} />
      )}
      <div class="grid">
        <State of={of} health={health} />
        {isOperators && <Waiting of={of} />}
      </div>
      <Series of={of} />
      <RecentAttempts of={of} />
      <div class="grid">
        <Configuration of={of} />
        {isOperators && <Policy endpoint={endpoint} />}
        <Secret of={of} />
        <Headers of={of} />
      </div>
      {isOperators && (
        <Card title="Changes of this endpoint">
          <ChangeList appId={appId} endpointId={endpoint.id} limit={10} />
        </Card>
      )}
    </>
  )
}

function Policy({ endpoint: { retry, policy } }: { readonly endpoint: Endpoint }) {
  return (
    <Card title="Retry policy" aside={retry !== null && <a href={toPolicy(retry)}>{retry}</a>}>
      <Schedule policy={policy} />
    </Card>
  )
}

function Configuration({ of: { appId, endpoint } }: { readonly of: OfEndpoint }) {
  const { id, uid, eventTypes, channels, rateLimit, concurrency, ordered, createdAt, updatedAt } = endpoint
  const metadata = Object.entries(endpoint.metadata)
  const isOperators = page.value === "dashboard"
  return (
    <Card title="Configuration">
      <Facts>
        <Fact name="Id">
          <Id id={id} />
        </Fact>
        {uid !== null && <Fact name="Uid">{uid}</Fact>}
        {isOperators && (
          <Fact name="Application">
            <ApplicationLink id={appId} />
          </Fact>
        )}
        <Fact name="Event types">{eventTypes?.join(", ") ?? "all"}</Fact>
        <Fact name="Channels">{channels?.join(", ") ?? "all"}</Fact>
        <Fact name="Requests in a second">{rateLimit === null ? "no limit" : `at most ${rateLimit}`}</Fact>
        <Fact name="Requests at once">
          {ordered
            ? "one, in order"
            : concurrency === null
              ? "as many as it takes"
              : `at most ${concurrency}`}
        </Fact>
        <Fact name="Created">
          <Time at={createdAt} />
        </Fact>
        <Fact name="Changed">
          <Time at={updatedAt} />
        </Fact>
        {metadata.map(([name, value]) => (
          <Fact key={name} name={name}>
            {value}
          </Fact>
        ))}
      </Facts>
    </Card>
  )
}

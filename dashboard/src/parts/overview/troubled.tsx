/** Endpoints by health, and those in trouble, the worst first. */
import { number, plural } from "../../format.ts"
import { toApplication, toEndpoint } from "../../links.ts"
import type { Overview } from "../../types.ts"
import { Card, Empty, Time } from "../../ui/basics.tsx"
import { Table } from "../../ui/table.tsx"
import { HEALTH_STATES, HealthBadge, Why } from "../health.tsx"

export function EndpointsByHealth({ overview: { endpoints, troubled } }: { readonly overview: Overview }) {
  const total = Object.values(endpoints).reduce((sum, one) => sum + one, 0)
  const states = HEALTH_STATES.filter((state) => (endpoints[state] ?? 0) > 0)
  const inTrouble = total - (endpoints.healthy ?? 0)
  return (
    <Card title="Endpoints" aside={<a href="/endpoints">all {number(total)}</a>}>
      <ul class="row plain-list">
        {states.map((state) => (
          <li key={state}>
            <a href={`/endpoints?health=${state}`} aria-label={`${endpoints[state]} ${state}`}>
              {number(endpoints[state]!)}
            </a>{" "}
            <HealthBadge health={state} />
          </li>
        ))}
      </ul>
      {troubled.length > 0 ? (
        <Table
          label="Endpoints in trouble"
          rows={troubled}
          keyOf={({ endpointId }) => endpointId}
          hrefOf={({ appId, endpointId }) => toEndpoint(appId, endpointId)}
          columns={COLUMNS}
        />
      ) : (
        <Empty title={total === 0 ? "No endpoints yet." : "Every endpoint is healthy."}>
          {total === 0 && (
            <p>
              An endpoint is a URL that webhooks are sent to. <a href="/endpoints">Create one</a>.
            </p>
          )}
        </Empty>
      )}
      {inTrouble > troubled.length && (
        <p class="faint">
          The worst {troubled.length} of {plural(inTrouble, "endpoint")}.{" "}
          <a href="/endpoints?health=troubled">Show all</a>
        </p>
      )}
    </Card>
  )
}

const COLUMNS: Parameters<typeof Table<Overview["troubled"][number]>>[0]["columns"] = [
  {
    title: "Endpoint",
    cell: ({ appId, appName, endpointId, url }) => (
      <>
        <a class="url" href={toEndpoint(appId, endpointId)}>
          {url}
        </a>
        <div class="faint">
          <a href={toApplication(appId)}>{appName === "" ? "a deleted application" : appName}</a>
        </div>
      </>
    ),
  },
  { title: "Health", cell: ({ health }) => <HealthBadge health={health} /> },
  {
    title: "Why",
    cell: ({ why }) => (
      <div class="why">
        <Why text={why} />
      </div>
    ),
  },
  { title: "Since", cell: ({ since }) => <Time at={since} /> },
  { title: "Waiting", align: "right", cell: ({ waiting }) => number(waiting) },
]

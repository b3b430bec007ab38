/** A list of endpoints with their health, in the dashboard and in the portal. */
import type { ComponentChildren } from "preact"
import { number, percent } from "../../format.ts"
import { toEndpoint } from "../../links.ts"
import { type List, useResource } from "../../resource.ts"
import { filterOf } from "../../router.ts"
import type { EndpointHealth } from "../../types.ts"
import { Time } from "../../ui/basics.tsx"
import { type Column, ListView } from "../../ui/table.tsx"
import { HealthBadge, Why } from "../health.tsx"

interface EndpointListProps {
  readonly path: string
  /** Only endpoints in these states of health. */
  readonly states?: string | readonly string[] | null
  readonly application?: Column<EndpointHealth>
  readonly empty: ComponentChildren
}

export function EndpointList({ path, states, application, empty }: EndpointListProps) {
  const list = useResource<List<EndpointHealth>>(
    path,
    { health: states, iterator: filterOf("iterator"), limit: 50 },
    { live: true },
  )
  return (
    <ListView
      label="Endpoints"
      list={list}
      keyOf={({ endpointId }) => endpointId}
      hrefOf={({ appId, endpointId }) => toEndpoint(appId, endpointId)}
      columns={[ENDPOINT, ...(application === undefined ? [] : [application]), ...NUMBERS]}
      empty={empty}
    />
  )
}

const ENDPOINT: Column<EndpointHealth> = {
  title: "Endpoint",
  cell: ({ appId, endpointId, endpointUid, endpointUrl }) => (
    <>
      <a class="url" href={toEndpoint(appId, endpointId)}>
        {endpointUrl}
      </a>
      {endpointUid !== null && <div class="faint">{endpointUid}</div>}
    </>
  ),
}

const NUMBERS: readonly Column<EndpointHealth>[] = [
  {
    title: "Health",
    cell: ({ health, since, why }) => (
      <>
        <HealthBadge health={health} /> {since !== null && <Time at={since} />}
        <div class="faint why">
          <Why text={why} />
        </div>
      </>
    ),
  },
  { title: "Waiting since", minor: true, cell: ({ oldestWaitingAt }) => <Time at={oldestWaitingAt} /> },
  {
    title: "Last hour",
    align: "right",
    cell: ({ lastHour: { attempts, successRate } }) =>
      attempts === 0 ? (
        <span class="faint">no attempts</span>
      ) : (
        <>
          {percent(successRate! * attempts, attempts)} <span class="faint">of {number(attempts)}</span>
        </>
      ),
  },
  {
    title: "p95",
    align: "right",
    minor: true,
    cell: ({ lastHour: { p95Ms } }) =>
      p95Ms === null ? <span class="faint">–</span> : `${number(p95Ms)} ms`,
  },
  { title: "Last success", minor: true, cell: ({ lastSuccessAt }) => <Time at={lastSuccessAt} /> },
]

/** Lanes: the endpoints where deliveries wait, and the reasons. */
import { number } from "../format.ts"
import { toEndpoint } from "../links.ts"
import { type List, useResource } from "../resource.ts"
import { filterOf } from "../router.ts"
import type { Lane } from "../types.ts"
import { Badge, Empty, Time, type Tone } from "../ui/basics.tsx"
import { ListView } from "../ui/table.tsx"
import { WAIT_TITLES } from "./delivery-state.tsx"

/** Reasons that need somebody's attention. */
const TONES: { readonly [R in Lane["reason"]]?: Tone } = {
  breaker: "bad",
  agent: "bad",
  paused: "warn",
  disabled: "warn",
  budget: "warn",
  held: "warn",
}

/** A bounded read stops at 10 000 deliveries of a queue. */
export function atLeast({ isLowerBound }: Lane, count: number): string {
  return isLowerBound ? `${number(count)} or more` : number(count)
}

export function LaneList({ appId = null }: { readonly appId?: string | null }) {
  const list = useResource<List<Lane>>(
    "/lane",
    { app_id: appId, limit: 50, iterator: filterOf("iterator"), bounded: true },
    { live: true },
  )
  return (
    <ListView
      list={list}
      label="Lanes"
      keyOf={({ endpointId }) => endpointId}
      hrefOf={({ appId: app, endpointId }) => toEndpoint(app, endpointId)}
      columns={[
        {
          title: "Endpoint",
          cell: ({ appId: app, endpointId, endpointUrl, endpointUid }) => (
            <a href={toEndpoint(app, endpointId)} class="url">
              {endpointUid ?? endpointUrl ?? endpointId}
            </a>
          ),
        },
        {
          title: "Why",
          cell: ({ reason }) => <Badge tone={TONES[reason] ?? "idle"}>{WAIT_TITLES[reason]}</Badge>,
        },
        { title: "First attempts", align: "right", cell: (lane) => atLeast(lane, lane.waiting) },
        { title: "Retries", align: "right", cell: (lane) => atLeast(lane, lane.retrying) },
        { title: "In flight", align: "right", minor: true, cell: ({ sending }) => number(sending) },
        { title: "Oldest", cell: ({ oldestAt }) => <Time at={oldestAt} /> },
        { title: "Next", minor: true, cell: ({ nextDueAt }) => <Time at={nextDueAt} /> },
      ]}
      empty={
        <Empty title="Nothing waits">
          <p>Every delivery was made or given up.</p>
        </Empty>
      }
    />
  )
}

/** The record of changes: caller, change, time. */
import { words } from "../format.ts"
import { toApplication, toEndpoint } from "../links.ts"
import { type List, useResource } from "../resource.ts"
import { filterOf } from "../router.ts"
import { Empty, Id, Time } from "../ui/basics.tsx"
import { ListView } from "../ui/table.tsx"

export interface Change {
  readonly id: string
  readonly at: string
  /** Such as `endpoint.pause`. */
  readonly action: string
  readonly by: {
    readonly kind: string
    readonly id: string | null
    readonly name: string
    readonly appId: string | null
  }
  readonly appId: string | null
  readonly endpointId: string | null
  readonly subject: string | null
  readonly detail: string | null
}

interface ChangeListProps {
  readonly appId?: string | null
  readonly endpointId?: string | null
  readonly limit?: number
}

export function ChangeList({ appId = null, endpointId = null, limit = 50 }: ChangeListProps) {
  const list = useResource<List<Change>>(
    "/change",
    { app_id: appId, endpoint_id: endpointId, limit, iterator: filterOf("iterator") },
    { live: true },
  )
  return (
    <ListView
      list={list}
      label="Changes"
      keyOf={({ id }) => id}
      columns={[
        { title: "When", cell: ({ at }) => <Time at={at} /> },
        { title: "Who", cell: ({ by }) => <span title={by.id ?? undefined}>{by.name}</span> },
        { title: "What", cell: ({ action }) => words(action) },
        { title: "Of", cell: (change) => <Subject of={change} /> },
        { title: "Detail", minor: true, cell: ({ detail }) => detail ?? "" },
      ]}
      empty={
        <Empty title="No changes">
          <p>Each change that somebody makes with a key or a session is kept here for 90 days.</p>
        </Empty>
      }
    />
  )
}

function Subject({ of: { appId, endpointId, subject } }: { readonly of: Change }) {
  if (appId !== null && endpointId !== null)
    return <Id id={endpointId} href={toEndpoint(appId, endpointId)} />
  if (subject !== null) return <code>{subject}</code>
  if (appId !== null) return <Id id={appId} href={toApplication(appId)} />
  return <span class="faint">–</span>
}

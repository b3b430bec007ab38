/** Dead letters by endpoint and cause, the largest group first. */

import { exactNumber, plural } from "../format.ts"
import { toDeadLetters, toEndpoint } from "../links.ts"
import type { Resource } from "../resource.ts"
import { may } from "../session.ts"
import type { DeadGroup } from "../types.ts"
import { Badge, Empty, Failure, Skeleton, Time } from "../ui/basics.tsx"
import { type Column, Table } from "../ui/table.tsx"
import { ApplicationName, type Applications, useApplications } from "./applications.tsx"
import { BulkActions, type DeadFilter } from "./dead-letter-actions.tsx"
import { type SelectedIds, SelectionBar, useSelection } from "./selection.tsx"
import { causeTitle, DEAD, DEAD_TITLES } from "./words.ts"

interface GroupRow extends DeadGroup {
  readonly id: string
}

/** The filter that finds the letters of a group. */
const filterOf = ({ appId, endpointId, deadReason, error }: DeadGroup): DeadFilter => ({
  app_id: appId,
  endpoint_id: endpointId,
  dead_reason: deadReason,
  cause: error ?? "none",
})

const columnsWith = (applications: Applications): readonly Column<GroupRow>[] => [
  {
    title: "Cause",
    cell: (group) => (
      <a href={toDeadLetters(filterOf(group))} title={`Given up because ${DEAD[group.deadReason]}.`}>
        {causeTitle(group.error ?? "")}, {DEAD_TITLES[group.deadReason]}
      </a>
    ),
  },
  {
    title: "Endpoint",
    cell: ({ appId, endpointId, endpointUid, endpointUrl }) => (
      <>
        {endpointUrl === null ? (
          <span title={endpointId}>
            <Badge tone="idle">deleted</Badge>
          </span>
        ) : (
          <a class="url" href={toEndpoint(appId, endpointId)} title={endpointUrl}>
            {endpointUid ?? endpointUrl}
          </a>
        )}
        <div class="faint">
          <ApplicationName all={applications} id={appId} />
        </div>
      </>
    ),
  },
  { title: "Count", align: "right", cell: ({ count }) => exactNumber(count) },
  { title: "Oldest", cell: ({ oldestAt }) => <Time at={oldestAt} /> },
  { title: "Newest", minor: true, cell: ({ newestAt }) => <Time at={newestAt} /> },
]

export interface DeadGroupList {
  readonly data: readonly DeadGroup[]
  /** The time down to which was searched; null when all was. */
  readonly searchedTo?: string | null
}

interface DeadGroupsProps {
  readonly groups: Resource<DeadGroupList>
  /** The filters of the page: they narrow what a group's action takes. */
  readonly within: DeadFilter
  readonly selected: SelectedIds
  readonly onDone: () => void
}

export function DeadGroups({ groups: { data, error, reload }, within, selected, onDone }: DeadGroupsProps) {
  const columns = columnsWith(useApplications())
  const rows = (data?.data ?? []).map((group) => ({ ...group, id: Object.values(filterOf(group)).join(" ") }))
  const selection = useSelection<GroupRow>(
    selected,
    rows,
    ({ error, endpointUid, endpointId }) => `${causeTitle(error ?? "")} of ${endpointUid ?? endpointId}`,
  )
  if (data === null) return error === null ? <Skeleton lines={8} /> : <Failure error={error} retry={reload} />
  if (rows.length === 0)
    return (
      <Empty title="No dead letters.">
        <p>A delivery comes here when every attempt failed, or when somebody cancelled it.</p>
      </Empty>
    )
  const done = () => {
    selection.clear()
    onDone()
  }
  const total = rows.reduce((sum, { count }) => sum + count, 0)
  return (
    <>
      {error !== null && <Failure error={error} retry={reload} />}
      {may("Change") && (
        <SelectionBar count={selection.rows.length}>
          <BulkActions
            of={plural(selection.rows.length, "group")}
            filters={selection.rows.map((group) => ({ ...within, ...filterOf(group) }))}
            onDone={done}
          />
        </SelectionBar>
      )}
      <Table
        label="Groups of dead letters"
        rows={rows}
        columns={may("Change") ? [selection.column, ...columns] : columns}
        keyOf={({ id }) => id}
        hrefOf={(group) => toDeadLetters(filterOf(group))}
      />
      <p class="hint">
        {plural(total, "dead letter")} in {plural(rows.length, "group")}
        {data.searchedTo != null && (
          <>
            {" "}
            of the newest 10 000, back to <Time at={data.searchedTo} />
          </>
        )}
        .
      </p>
    </>
  )
}

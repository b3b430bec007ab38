/** The inbox of dead letters: groups by endpoint and cause, and the letters of a group. */
import { api, pathTo } from "../api.ts"
import { toDeadLetters, toDelivery, toEndpoint, toMessage } from "../links.ts"
import { type DeadGroupList, DeadGroups } from "../parts/dead-groups.tsx"
import { BulkActions } from "../parts/dead-letter-actions.tsx"
import { FilterBar, FilteredList } from "../parts/filtered-list.tsx"
import { RecentTasks, useRecentTasks } from "../parts/recent-tasks.tsx"
import { forEach, SelectionBar, useSelectedIds, useSelection } from "../parts/selection.tsx"
import { TIME_FILTERS, TimeFilter, useTimeSpan } from "../parts/time-filter.tsx"
import { DEAD_TITLES } from "../parts/words.ts"
import { type List, useResource } from "../resource.ts"
import { filterOf } from "../router.ts"
import { may } from "../session.ts"
import type { Delivery } from "../types.ts"
import { Button, Empty, Heading, Id, Time } from "../ui/basics.tsx"
import { ask } from "../ui/dialog.tsx"
import { ChoiceFilter, TextFilter } from "../ui/filters.tsx"
import { ApplicationFilter } from "../ui/forms.tsx"
import type { Column } from "../ui/table.tsx"

/** The names of the API's parameters. */
const FILTERS = ["app_id", "dead_reason", "event_types", "tag"] as const
/** With one of these, the page shows letters and not groups. */
const OF_LETTERS = ["endpoint_id", "cause", "msg_id"] as const
const MOST_GROUPS = 250

export function DeadLetters() {
  const { problem, ...span } = useTimeSpan()
  const tasks = useRecentTasks()
  const names = [...FILTERS, ...OF_LETTERS]
  const filter = { ...Object.fromEntries(names.map((name) => [name, filterOf(name)])), ...span }
  const props = { filter, problem, onDone: tasks.reload }
  return (
    <>
      {OF_LETTERS.some((name) => filterOf(name) !== null) ? <Letters {...props} /> : <Groups {...props} />}
      <RecentTasks tasks={tasks} />
    </>
  )
}

interface ViewProps {
  readonly filter: { readonly [name: string]: string | null }
  readonly problem: string | null
  readonly onDone: () => void
}

function Groups({ filter, problem, onDone }: ViewProps) {
  const selected = useSelectedIds()
  const groups = useResource<DeadGroupList>(
    problem === null ? "/dead-letter/group" : null,
    { ...filter, by: "cause", limit: MOST_GROUPS, bounded: true },
    { live: selected.isLive },
  )
  return (
    <>
      <Heading title="Dead letters" />
      <FilterBar
        names={[...FILTERS, ...TIME_FILTERS]}
        filters={<Filters />}
        resource={groups}
        problem={problem}
      >
        <DeadGroups
          groups={groups}
          selected={selected}
          within={filter}
          onDone={() => {
            groups.reload()
            onDone()
          }}
        />
      </FilterBar>
    </>
  )
}

const COLUMNS: readonly Column<Delivery>[] = [
  { title: "Delivery", cell: ({ id }) => <Id id={id} href={toDelivery(id)} /> },
  { title: "Reason", cell: ({ deadReason }) => DEAD_TITLES[deadReason!] },
  { title: "Last error", cell: ({ error }) => <span class="url">{error ?? "–"}</span> },
  { title: "Event type", cell: ({ eventType }) => eventType },
  {
    title: "Endpoint",
    minor: true,
    cell: ({ appId, endpointId, url }) => (
      <a class="url" href={toEndpoint(appId, endpointId)}>
        {url}
      </a>
    ),
  },
  {
    title: "Message",
    minor: true,
    cell: ({ appId, msgId }) => <Id id={msgId} href={toMessage(appId, msgId)} />,
  },
  { title: "Received", cell: ({ receivedAt }) => <Time at={receivedAt} /> },
]

function Letters({ filter, problem, onDone }: ViewProps) {
  const selected = useSelectedIds()
  const list = useResource<List<Delivery>>(
    problem === null ? "/dead-letter" : null,
    { ...filter, bounded: true, iterator: filterOf("iterator") },
    { live: selected.isLive },
  )
  const selection = useSelection(selected, list.data?.data ?? [], ({ id }) => id)
  const { rows } = selection
  const finish = () => {
    selection.clear()
    list.reload()
    onDone()
  }
  const act = (action: "retry" | "discard", done: string) => async () => {
    await forEach(rows, ({ id }) => api.post(pathTo("/dead-letter", id, action)), done)
    finish()
  }
  return (
    <>
      <Heading title="Dead letters" above={<a href={toDeadLetters()}>All groups</a>}>
        {problem === null && <BulkActions of="all of these" filters={[filter]} onDone={finish} />}
      </Heading>
      <FilteredList
        names={[...FILTERS, ...OF_LETTERS, ...TIME_FILTERS]}
        filters={
          <>
            <Filters />
            <TextFilter name="endpoint_id" label="Endpoint" placeholder="ep_…" />
            <TextFilter name="cause" label="Cause" placeholder="HTTP 500" />
          </>
        }
        problem={problem}
        above={
          may("Change") && (
            <SelectionBar count={rows.length}>
              <Button onClick={act("retry", "sent again")}>Send again</Button>
              <Button kind="danger" onClick={() => confirmDiscard(act("discard", "discarded"))}>
                Discard
              </Button>
            </SelectionBar>
          )
        }
        list={list}
        label="Dead letters"
        columns={may("Change") ? [selection.column, ...COLUMNS] : COLUMNS}
        keyOf={({ id }) => id}
        hrefOf={({ id }) => toDelivery(id)}
        empty={<Empty title="No dead letters." />}
      />
    </>
  )
}

function Filters() {
  return (
    <>
      <ApplicationFilter />
      <ChoiceFilter name="dead_reason" label="Reason" choices={Object.entries(DEAD_TITLES)} />
      <TextFilter name="event_types" label="Event type" placeholder="invoice.paid" />
      <TextFilter name="tag" label="Tag" />
      <TimeFilter />
    </>
  )
}

function confirmDiscard(run: () => Promise<void>): void {
  ask({
    title: "Discard the selected dead letters?",
    text: <p>They leave this list and are not sent. Their records stay until their retention ends.</p>,
    action: "Discard them",
    kind: "danger",
    run,
  })
}

/** All deliveries, the newest first, by filters that the address keeps. */
import { api, pathTo } from "../api.ts"
import { plural } from "../format.ts"
import { toDelivery, toEndpoint, toMessage } from "../links.ts"
import { DeliveryState, Next } from "../parts/delivery-state.tsx"
import { FilteredList } from "../parts/filtered-list.tsx"
import { forEach, SelectionBar, useSelectedIds, useSelection } from "../parts/selection.tsx"
import { TIME_FILTERS, TimeFilter, useTimeSpan } from "../parts/time-filter.tsx"
import { STATUSES } from "../parts/words.ts"
import { type List, listOf, useResource } from "../resource.ts"
import { filterOf } from "../router.ts"
import { may } from "../session.ts"
import type { Delivery } from "../types.ts"
import { Button, Empty, Heading, Id, Time } from "../ui/basics.tsx"
import { ask } from "../ui/dialog.tsx"
import { ChoiceFilter, TextFilter } from "../ui/filters.tsx"
import { ApplicationFilter } from "../ui/forms.tsx"
import type { Column } from "../ui/table.tsx"

/** The names of the API's parameters; `id` names one delivery. */
const FILTERS = [
  "status",
  "app_id",
  "endpoint_id",
  "msg_id",
  "event_types",
  "tag",
  "status_code_class",
] as const
const NAMES = ["id", ...FILTERS, ...TIME_FILTERS]

const CODES = [
  ["0", "no answer"],
  ["200", "2xx"],
  ["300", "3xx"],
  ["400", "4xx"],
  ["500", "5xx"],
] as const

const COLUMNS: readonly Column<Delivery>[] = [
  { title: "Delivery", cell: ({ id }) => <Id id={id} href={toDelivery(id)} /> },
  { title: "State", cell: (row) => <DeliveryState {...row} /> },
  {
    title: "Message",
    cell: ({ appId, msgId, eventType }) => (
      <>
        <div>{eventType}</div>
        <Id id={msgId} href={toMessage(appId, msgId)} />
      </>
    ),
  },
  {
    title: "Endpoint",
    minor: true,
    cell: ({ appId, endpointId, url }) => (
      <a class="url" href={toEndpoint(appId, endpointId)} title={endpointId}>
        {url}
      </a>
    ),
  },
  { title: "Attempts", align: "right", cell: ({ attemptCount }) => attemptCount },
  { title: "Next attempt", minor: true, cell: (row) => <Next {...row} /> },
  { title: "Received", cell: ({ receivedAt }) => <Time at={receivedAt} /> },
]

export function Deliveries() {
  const selected = useSelectedIds()
  const { list, problem } = useDeliveries(selected.isLive)
  const selection = useSelection(selected, list.data?.data ?? [], ({ id }) => id)
  const { rows } = selection
  const act = (action: "retry" | "cancel", done: string) => async () => {
    await forEach(rows, ({ id }) => api.post(pathTo("/delivery", id, action)), done)
    selection.clear()
    list.reload()
  }
  return (
    <>
      <Heading title="Deliveries" />
      <FilteredList
        names={NAMES}
        filters={<Filters />}
        problem={problem}
        above={
          may("Change") && (
            <SelectionBar count={rows.length}>
              <Button onClick={() => confirmRetry(rows, act("retry", "sent again"))}>Retry now</Button>
              <Button kind="danger" onClick={() => confirmCancel(rows.length, act("cancel", "cancelled"))}>
                Cancel
              </Button>
            </SelectionBar>
          )
        }
        list={list}
        label="Deliveries"
        columns={may("Change") ? [selection.column, ...COLUMNS] : COLUMNS}
        keyOf={({ id }) => id}
        hrefOf={({ id }) => toDelivery(id)}
        empty={
          <Empty title="No deliveries yet.">
            <p>A message that an endpoint subscribes to becomes a delivery for that endpoint.</p>
            <a class="button" href="/messages">
              Send a message
            </a>
          </Empty>
        }
      />
    </>
  )
}

function Filters() {
  return (
    <>
      <TextFilter name="id" label="Id" placeholder="dlv_…" />
      <ChoiceFilter
        name="status"
        label="Status"
        choices={STATUSES.map(([value, word]) => [value, word] as const)}
      />
      <ApplicationFilter />
      <TextFilter name="endpoint_id" label="Endpoint" placeholder="ep_…" />
      <TextFilter name="event_types" label="Event type" placeholder="invoice.paid" />
      <TextFilter name="tag" label="Tag" />
      <ChoiceFilter name="status_code_class" label="Last answer" choices={CODES} />
      <TextFilter name="msg_id" label="Message" placeholder="msg_…" />
      <TimeFilter />
    </>
  )
}

/** An id leads to one delivery, and then the other filters do not count. */
function useDeliveries(live: boolean) {
  const { problem, ...span } = useTimeSpan()
  const id = filterOf("id")
  const query = Object.fromEntries(FILTERS.map((name) => [name, filterOf(name)]))
  const all = useResource<List<Delivery>>(
    id === null && problem === null ? "/delivery" : null,
    { ...query, ...span, bounded: true, iterator: filterOf("iterator") },
    { live },
  )
  const one = useResource<Delivery>(id === null ? null : pathTo("/delivery", id), {}, { live })
  return { list: id === null ? all : listOf(one), problem }
}

function confirmRetry(rows: readonly Delivery[], run: () => Promise<void>): unknown {
  const finished = rows.filter(({ status }) => status === "delivered" || status === "dead").length
  if (finished === 0) return run()
  ask({
    title: "Send again?",
    text: (
      <p>
        {plural(finished, "of them is finished", "of them are finished")}: the receiver gets the message
        again, with the same id.
      </p>
    ),
    action: "Send again",
    run,
  })
}

function confirmCancel(count: number, run: () => Promise<void>): void {
  ask({
    title: `Cancel ${plural(count, "delivery", "deliveries")}?`,
    text: <p>They are not sent. They become dead letters, which can be sent again.</p>,
    action: "Cancel them",
    kind: "danger",
    run,
  })
}

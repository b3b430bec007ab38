/** The messages of one application, for the dashboard and the portal. */
import type { ComponentChildren } from "preact"
import { pathTo } from "../api.ts"
import { toMessage } from "../links.ts"
import { type List, listOf, useResource } from "../resource.ts"
import { filterOf } from "../router.ts"
import type { Message } from "../types.ts"
import { Id, Time } from "../ui/basics.tsx"
import { TextFilter } from "../ui/filters.tsx"
import { FilteredList } from "./filtered-list.tsx"
import { TIME_FILTERS, TimeFilter, useTimeSpan } from "./time-filter.tsx"

/** The names of the API's parameters; `id` names one message. */
const FILTERS = ["event_types", "tag", "channel"] as const

interface MessageListProps {
  readonly appId: string
  /** A filter before the others. */
  readonly filter?: ComponentChildren
  readonly empty: ComponentChildren
}

export function MessageList({ appId, filter, empty }: MessageListProps) {
  const { list, problem } = useMessages(appId)
  return (
    <FilteredList
      needed={filter === undefined ? [] : ["app_id"]}
      names={["id", ...FILTERS, ...TIME_FILTERS]}
      filters={
        <>
          {filter}
          <TextFilter name="id" label="Id" placeholder="msg_… or event id" />
          <TextFilter name="event_types" label="Event type" placeholder="invoice.paid" />
          <TextFilter name="tag" label="Tag" />
          <TextFilter name="channel" label="Channel" />
          <TimeFilter />
        </>
      }
      problem={problem}
      list={list}
      label="Messages"
      columns={[
        { title: "Message", cell: ({ id }) => <Id id={id} href={toMessage(appId, id)} /> },
        { title: "Event type", cell: ({ eventType }) => eventType },
        { title: "Event id", minor: true, cell: ({ eventId }) => eventId ?? "" },
        { title: "Tags", minor: true, cell: ({ tags }) => tags?.join(", ") ?? "" },
        { title: "Channels", minor: true, cell: ({ channels }) => channels?.join(", ") ?? "" },
        { title: "Endpoints", align: "right", cell: ({ matched }) => matched ?? "" },
        { title: "Received", cell: ({ timestamp }) => <Time at={timestamp} /> },
      ]}
      keyOf={({ id }) => id}
      hrefOf={({ id }) => toMessage(appId, id)}
      empty={empty}
    />
  )
}

/** An id leads to one message, and then the other filters do not count. */
function useMessages(appId: string) {
  const { problem, ...span } = useTimeSpan()
  const id = filterOf("id")
  const query = Object.fromEntries(FILTERS.map((name) => [name, filterOf(name)]))
  const all = useResource<List<Message>>(
    id === null && problem === null ? pathTo("/app", appId, "/msg") : null,
    { ...query, ...span, with_content: false, bounded: true, iterator: filterOf("iterator") },
    { live: true },
  )
  const one = useResource<Message>(id === null ? null : pathTo("/app", appId, "/msg", id), {
    with_content: false,
  })
  return { list: id === null ? all : listOf(one), problem }
}

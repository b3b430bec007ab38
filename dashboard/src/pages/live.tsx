/** The live event stream, with filters and a pause. */
import { useEffect, useRef, useState } from "preact/hooks"
import { pathWith } from "../api.ts"
import { follow } from "../follow.ts"
import { clockTime, localTime, plural } from "../format.ts"
import { type LiveEvent, LiveSentence, toneOf } from "../parts/live-event.tsx"
import { filterOf } from "../router.ts"
import type { StreamState } from "../stream.ts"
import { Badge, Button, Empty, Heading } from "../ui/basics.tsx"
import { ChoiceFilter, TextFilter } from "../ui/filters.tsx"
import { ApplicationFilter } from "../ui/forms.tsx"
import { Table } from "../ui/table.tsx"

const KEPT = 200

const KINDS = [
  ["delivery.attempt", "Attempts"],
  ["delivery.delivered", "Delivered"],
  ["delivery.dead", "Dead letters"],
  ["endpoint.failing", "Endpoints begin to fail"],
  ["endpoint.recovered", "Endpoints work again"],
  ["endpoint.disabled", "Endpoints are disabled"],
  ["endpoint.breaker.opened", "Breakers open"],
  ["endpoint.breaker.half_open", "Breakers try"],
  ["endpoint.breaker.closed", "Breakers close"],
  ["agent.connected", "Agents connect"],
  ["agent.disconnected", "Agents disconnect"],
  ["engine.outage.began", "The server's network fails"],
  ["engine.outage.ended", "The server's network works again"],
] as const

interface Row {
  readonly id: string
  readonly event: LiveEvent
}

export function Live() {
  const [rows, setRows] = useState<readonly Row[]>([])
  const [missed, setMissed] = useState(0)
  const [isPaused, setPaused] = useState(false)
  const [state, setState] = useState<StreamState>({ kind: "connecting" })
  const paused = useRef(false)
  const held = useRef<readonly Row[]>([])
  const path = pathWith("/api/v1/events", {
    app_id: filterOf("app_id"),
    endpoint_id: filterOf("endpoint_id"),
    kind: filterOf("kind"),
  })
  const clear = () => {
    setRows([])
    held.current = []
    setMissed(0)
  }
  useEffect(() => {
    clear()
    let count = 0
    return follow(path, {
      onState: setState,
      onEvents(events) {
        const added = events
          .map(({ kind, id, data }) => ({ id: id ?? `${kind} ${++count}`, event: { ...data, type: kind } }))
          .reverse()
        if (!paused.current) return setRows((before) => [...added, ...before].slice(0, KEPT))
        held.current = [...added, ...held.current].slice(0, KEPT)
        setMissed((before) => before + added.length)
      },
    })
  }, [path])
  const toggle = () => {
    paused.current = !paused.current
    setPaused(paused.current)
    if (paused.current) return
    const waiting = held.current
    held.current = []
    setMissed(0)
    setRows((before) => [...waiting, ...before].slice(0, KEPT))
  }
  return (
    <>
      <Heading title="Live">
        {isPaused && missed > 0 && <Badge tone="info">{plural(missed, "event")} since the pause</Badge>}
        <Button kind="primary" onClick={toggle}>
          {isPaused ? "Go on" : "Pause"}
        </Button>
        <Button onClick={clear}>Clear</Button>
      </Heading>
      <div class="filters">
        <ApplicationFilter />
        <TextFilter name="endpoint_id" label="Endpoint" placeholder="ep_…" />
        <ChoiceFilter name="kind" label="Events" choices={KINDS} />
      </div>
      {state.kind === "refused" && (
        <p class="form-error" role="alert">
          The stream was refused: {state.text}. Change the filters, or sign in again.
        </p>
      )}
      {rows.length === 0 ? (
        <Empty title="Nothing happened since you opened this page">
          <p>
            Events appear here the moment they happen: attempts, deliveries, dead letters, changes of
            endpoints.
          </p>
        </Empty>
      ) : (
        <div class="steady-columns">
          <Table
            label="Events"
            rows={rows}
            // Rows stay where they are and change their texts: new rows at the top would move all others, four times a second.
            keyOf={(_row, i) => String(i)}
            columns={[
              {
                title: "Time",
                cell: ({ event: { at } }) => (
                  <time dateTime={new Date(at).toISOString()} title={localTime(at)}>
                    {clockTime(at)}
                  </time>
                ),
              },
              { title: "Event", cell: ({ event }) => <Badge tone={toneOf(event)}>{event.type}</Badge> },
              { title: "What", cell: ({ event }) => <LiveSentence event={event} /> },
            ]}
          />
        </div>
      )}
    </>
  )
}

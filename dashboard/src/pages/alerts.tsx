/** Alerts: those that fire now, and those that are resolved. */

import { toAlert } from "../links.ts"
import { AlertState, AlertTabs } from "../parts/alert-tabs.tsx"
import { Why } from "../parts/health.tsx"
import { type List, useResource } from "../resource.ts"
import { filterOf } from "../router.ts"
import type { Alert } from "../types.ts"
import { Empty, Heading, Time } from "../ui/basics.tsx"
import { ChoiceFilter, TextFilter } from "../ui/filters.tsx"
import { ListView } from "../ui/table.tsx"

const STATES = ["firing", "acknowledged", "silenced", "pending", "resolved"] as const

export function Alerts() {
  const [state, rule] = [filterOf("state"), filterOf("rule")]
  const list = useResource<List<Alert>>(
    "/alert",
    { limit: 50, order: "descending", state, rule, iterator: filterOf("iterator") },
    { live: true },
  )
  const evaluation = useResource<{ readonly evaluatedAt: string | null }>(
    "/alert-evaluation",
    {},
    { live: true },
  )
  return (
    <>
      <Heading title="Alerts" />
      <AlertTabs />
      <div class="filters">
        <ChoiceFilter name="state" label="State" choices={STATES.map((one) => [one, one] as const)} />
        <TextFilter name="rule" label="Rule" placeholder="endpoint-failing" />
      </div>
      {evaluation.data !== null && (
        <p class="soft">
          {evaluation.data.evaluatedAt === null ? (
            "The rules were never evaluated: no process that delivers is running."
          ) : (
            <>
              The rules were evaluated <Time at={evaluation.data.evaluatedAt} />.
            </>
          )}
        </p>
      )}
      <ListView
        list={list}
        label="Alerts"
        keyOf={({ id }) => id}
        hrefOf={({ id }) => toAlert(id)}
        columns={[
          { title: "State", cell: ({ state: one }) => <AlertState state={one} /> },
          {
            title: "Alert",
            cell: ({ id, rule: ruleId, name }) => (
              <>
                <a href={toAlert(id)}>{ruleId}</a>
                <div class="faint">{name}</div>
              </>
            ),
          },
          { title: "Why", cell: ({ detail }) => <Why text={detail} /> },
          { title: "Severity", minor: true, cell: ({ severity }) => severity },
          { title: "Since", cell: ({ since }) => <Time at={since} /> },
          { title: "Ended", minor: true, cell: ({ endedAt }) => <Time at={endedAt} /> },
        ]}
        empty={
          state === null && rule === null ? (
            <Empty title="No alerts">
              <p>
                Nothing was wrong yet. <a href="/alerts/channels">Channels</a> say who is told when something
                is.
              </p>
            </Empty>
          ) : (
            <Empty title="No alerts with these filters">
              <p>
                <a href="/alerts">Show all alerts</a>
              </p>
            </Empty>
          )
        }
      />
    </>
  )
}

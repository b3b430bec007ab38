/** Attempts, latency and status codes of an endpoint over time. */

import { useComputed } from "@preact/signals"
import { useMemo } from "preact/hooks"
import { now } from "../../clock.ts"
import { exactNumber, percent } from "../../format.ts"
import { useResource } from "../../resource.ts"
import { filterOf } from "../../router.ts"
import type { EndpointSeries } from "../../types.ts"
import { Bars } from "../../ui/bars.tsx"
import { Card, Empty, Failure, Skeleton, type Tone } from "../../ui/basics.tsx"
import { Chart } from "../../ui/chart.tsx"
import { ChoiceFilter } from "../../ui/filters.tsx"
import { AttemptsByHour } from "../attempts-by-hour.tsx"
import { type OfEndpoint, pathOf } from "./context.ts"

const HOUR_MS = 3_600_000
const SPANS: readonly (readonly [string, string, number])[] = [
  ["7d", "Last 7 days", 7 * 24],
  ["30d", "Last 30 days", 30 * 24],
]

export function Series({ of }: { readonly of: OfEndpoint }) {
  const hours = SPANS.find(([name]) => name === filterOf("span"))?.[2] ?? 24
  const hour = useComputed(() => Math.floor(now.value / HOUR_MS)).value
  const since = useMemo(() => new Date((hour - hours + 1) * HOUR_MS).toISOString(), [hour, hours])
  const { data, error, reload } = useResource<EndpointSeries>(
    pathOf(of, "/series"),
    { since },
    { live: true },
  )
  return (
    <>
      <div class="filters">
        <ChoiceFilter
          name="span"
          label="Figures of"
          all="Last 24 hours"
          choices={SPANS.map(([name, title]) => [name, title] as const)}
        />
      </div>
      {error !== null && <Failure error={error} retry={reload} />}
      {data === null ? error === null && <Skeleton lines={18} /> : <Charts of={of} series={data} />}
    </>
  )
}

interface ChartsProps {
  readonly of: OfEndpoint
  readonly series: EndpointSeries
}

function Charts({ of, series: { hours, statusCodes, sampled } }: ChartsProps) {
  // An agent says whether it took an event, and only sometimes with an HTTP status.
  const isAgents = of.endpoint.url.startsWith("relay:")
  const times = useMemo(() => hours.map(({ hour }) => Date.parse(hour)), [hours])
  return (
    <div class="grid">
      <Card title="Attempts" aside="by the hour">
        <AttemptsByHour hours={hours} />
      </Card>
      <Card title="Latency" aside="by the hour">
        <Chart
          label="How long half of the attempts took at most, and 95 % of them, in each hour"
          unit="ms"
          times={times}
          series={[
            { title: "median", color: "accent", values: hours.map(({ p50Ms }) => p50Ms) },
            { title: "95 %", color: "warn", values: hours.map(({ p95Ms }) => p95Ms) },
          ]}
        />
      </Card>
      <Card title="Answers" aside={`the newest ${exactNumber(sampled)} attempts`}>
        {sampled === 0 ? (
          <Empty title="No attempts in this time." />
        ) : (
          <Bars
            whole={sampled}
            rows={statusCodes.map(({ status, count }) => ({
              key: `${status}`,
              title: status !== 0 ? `HTTP ${status}` : isAgents ? "no HTTP status" : "no answer",
              value: count,
              tone: status === 0 && isAgents ? "idle" : toneOf(status),
              amount: (
                <>
                  {exactNumber(count)} <span class="faint">{percent(count, sampled)}</span>
                </>
              ),
            }))}
          />
        )}
      </Card>
    </div>
  )
}

function toneOf(status: number): Tone {
  if (status >= 200 && status < 300) return "good"
  return status >= 300 && status < 500 ? "warn" : "bad"
}

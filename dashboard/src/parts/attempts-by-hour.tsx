/** The outcomes of the attempts of each hour. */
import { Chart } from "../ui/chart.tsx"

interface Hour {
  readonly hour: string
  readonly attempts: number
  readonly succeeded: number
  /** Deliveries that were given up. */
  readonly dead: number
}

export function AttemptsByHour({ hours }: { readonly hours: readonly Hour[] }) {
  return (
    <Chart
      label="Attempts that succeeded and that failed in each hour, and deliveries given up"
      times={hours.map(({ hour }) => Date.parse(hour))}
      series={[
        { title: "succeeded", color: "good", values: hours.map(({ succeeded }) => succeeded) },
        {
          title: "failed",
          color: "bad",
          values: hours.map(({ attempts, succeeded }) => attempts - succeeded),
        },
        { title: "given up", color: "warn", values: hours.map(({ dead }) => dead) },
      ]}
    />
  )
}

/** The rates of each second of the last five minutes. */
import { useMemo } from "preact/hooks"
import { now } from "../../clock.ts"
import { liveSince, type Summary, streamState, summaries } from "../../live.ts"
import { Card } from "../../ui/basics.tsx"
import { Chart } from "../../ui/chart.tsx"

const SHOWN_SECONDS = 300
/** The summary of the newest seconds is still on its way. */
const DELAY_SECONDS = 2

interface Rates {
  readonly times: readonly number[]
  readonly accepted: readonly (number | null)[]
  readonly delivered: readonly (number | null)[]
  readonly failing: readonly (number | null)[]
}

export function LiveRates() {
  const second = Math.floor(now.value / 1000)
  const [known, since] = [summaries.value, liveSince.value]
  const rates = useMemo(() => ratesOf(known, since, second - DELAY_SECONDS), [known, since, second])
  const state = streamState.value
  return (
    <Card title="Per second" aside="the last five minutes, live">
      {state.kind === "refused" && <p class="soft">Nothing is shown live: {state.text}</p>}
      <Chart
        label="Messages accepted, deliveries made and attempts that failed in each second"
        times={rates.times}
        series={[
          { title: "accepted", color: "accent", values: rates.accepted },
          { title: "delivered", color: "good", values: rates.delivered },
          { title: "failing", color: "bad", values: rates.failing },
        ]}
      />
    </Card>
  )
}

/** After a summary of zeros the stream is silent: a second without a summary is zero, if the stream was connected. */
function ratesOf(known: readonly Summary[], since: number | null, last: number): Rates {
  const first = last - SHOWN_SECONDS + 1
  const seconds = Array.from({ length: SHOWN_SECONDS }, (_, i) => first + i)
  const values = (count: (summary: Summary) => number) => {
    const sums: (number | null)[] = seconds.map((second) =>
      since === null || second * 1000 < since ? null : 0,
    )
    for (const summary of known)
      for (const [second, share] of sharesOf(summary, first)) {
        const i = second - first
        if (i >= 0 && i < SHOWN_SECONDS) sums[i] = (sums[i] ?? 0) + share * count(summary)
      }
    return sums.map((sum) => sum && Math.round(10 * sum) / 10)
  }
  return {
    times: seconds.map((second) => second * 1000),
    accepted: values(({ accepted }) => accepted),
    delivered: values(({ counts }) => counts["delivery.delivered"] ?? 0),
    failing: values(({ failedAttempts }) => failedAttempts),
  }
}

/** The part of a period that each second has, from the first second that is shown. */
function sharesOf({ from, to }: Summary, first: number): readonly (readonly [number, number])[] {
  const [start, span] = [from / 1000, Math.max(0.001, (to - from) / 1000)]
  const shares: (readonly [number, number])[] = []
  for (let second = Math.max(first, Math.floor(start)); second < start + span; second++) {
    const part = Math.min(second + 1, start + span) - Math.max(second, start)
    shares.push([second, part / span])
  }
  return shares
}

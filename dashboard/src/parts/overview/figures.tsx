/** Waiting deliveries, and how late the oldest is. */
import { now } from "../../clock.ts"
import { duration, exactNumber, number } from "../../format.ts"
import { toDeliveries, toEndpoint } from "../../links.ts"
import type { Overview } from "../../types.ts"
import { Figure, type Tone } from "../../ui/basics.tsx"

/** More than the first is late, more than the second is very late. */
const LATE_SECONDS = [30, 300] as const

export function Figures({ overview }: { readonly overview: Overview }) {
  const { due, retrying, scheduled, held } = overview.deliveries
  const dead = overview.deadLetters.reduce((sum, { count }) => sum + count, 0)
  return (
    <div class="figures">
      <Count label="due now" count={due} href={toDeliveries({ status: "pending" })} />
      <Late overview={overview} />
      <Count label="wait for a retry" count={retrying} href={toDeliveries({ status: "failed" })} />
      <Count
        label="held by their endpoint"
        count={held}
        href="/workers"
        tone={held > 0 ? "warn" : undefined}
      />
      <Count label="sent later, as asked" count={scheduled} href={toDeliveries({ status: "pending" })} />
      <Count label="dead letters" count={dead} href="/dead-letters" tone={dead > 0 ? "warn" : undefined} />
    </div>
  )
}

interface CountProps {
  readonly label: string
  readonly count: number
  readonly href: string
  readonly tone?: Tone | undefined
}

function Count({ label, count, href, tone = "idle" }: CountProps) {
  return (
    <Figure label={label} tone={tone} title={exactNumber(count)}>
      <a href={href}>{number(count)}</a>
    </Figure>
  )
}

function Late({ overview: { oldestDue, deliveries } }: { readonly overview: Overview }) {
  // A due delivery of an endpoint that fails waits for its next attempt.
  if (oldestDue === null)
    return (
      <Figure
        label={deliveries.due === 0 ? "nothing is late" : "nothing is late at endpoints that work"}
        tone="good"
      >
        0 s
      </Figure>
    )
  const seconds = Math.max(0, (now.value - Date.parse(oldestDue.at)) / 1000)
  const [late, veryLate] = LATE_SECONDS
  const tone = seconds < late ? "idle" : seconds < veryLate ? "warn" : "bad"
  const text = seconds < 1 ? "0 s" : duration(seconds)
  return (
    <Figure label="the oldest that is due waits" tone={tone}>
      {oldestDue.appId === null ? (
        text
      ) : (
        <a href={toEndpoint(oldestDue.appId, oldestDue.endpointId)}>{text}</a>
      )}
    </Figure>
  )
}

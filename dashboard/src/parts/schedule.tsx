/** A retry policy drawn: the time of each attempt, and the protection of the endpoint. */
import { useEffect, useState } from "preact/hooks"
import { ApiError, api } from "../api.ts"
import { duration, plural } from "../format.ts"
import type { PolicyPreview } from "../types.ts"
import { Fact, Facts, Failure, Skeleton } from "../ui/basics.tsx"

const PROTECTIONS = [
  ["breaker", "Circuit breaker"],
  ["budget", "Retry budget"],
  ["adaptive", "Adaptive delays"],
  ["autoDisable", "Automatic disabling"],
] as const

/** As many as the server counts: `relay` has 179 in its seven days. */
const MOST_ATTEMPTS = 1000
/** Attempts that are written out; the drawing has them all. */
const WRITTEN = 12

interface ScheduleProps {
  /** The name of a policy, or its fields. */
  readonly policy: string | object
  /** The drawing and one sentence. */
  readonly brief?: boolean
}

export function Schedule({ policy, brief = false }: ScheduleProps) {
  const [preview, setPreview] = useState<PolicyPreview | null>(null)
  const [error, setError] = useState<ApiError | null>(null)
  const asked = JSON.stringify(policy)
  useEffect(() => {
    let isOld = false
    api
      .post<PolicyPreview>("/retry-policy/preview", {
        policy: JSON.parse(asked),
        attempts: MOST_ATTEMPTS,
      })
      .then(
        (answer) => {
          if (isOld) return
          setPreview(answer)
          setError(null)
        },
        (failed) => {
          if (!isOld && failed instanceof ApiError) setError(failed)
        },
      )
    return () => {
      isOld = true
    }
  }, [asked])
  if (error !== null) return <Failure error={error} />
  if (preview === null) return <Skeleton lines={4} />
  // The first attempt is among them, at 0.
  const { seconds } = preview
  if (brief)
    return (
      <>
        <Drawing seconds={seconds} />
        <p class="soft">
          {plural(seconds.length, "attempt")} within {duration(seconds.at(-1)!)}
        </p>
      </>
    )
  return (
    <div class="stack">
      <Drawing seconds={seconds} />
      <ol class="schedule">
        {seconds.slice(0, WRITTEN).map((at, i) => (
          <li key={i}>
            {i === 0 ? "first attempt at once" : `retry ${i} after ${duration(at - seconds[i - 1]!)}`}
            {i > 1 && <span class="faint"> · {duration(at)} after the first</span>}
          </li>
        ))}
        {seconds.length > WRITTEN && (
          <li class="faint">
            and {seconds.length - WRITTEN} more, the last {duration(seconds.at(-1)!)} after the first
          </li>
        )}
      </ol>
      <Facts>
        {PROTECTIONS.map(([field, title]) => (
          <Fact key={field} name={title}>
            {preview.protection[field].text}
          </Fact>
        ))}
      </Facts>
    </div>
  )
}

const [WIDTH, HEIGHT, EDGE] = [600, 46, 12]

/** A logarithmic line: seconds and days have room side by side. */
function Drawing({ seconds }: { readonly seconds: readonly number[] }) {
  const most = Math.log1p(seconds.at(-1)!) || 1
  const x = (at: number) => EDGE + ((WIDTH - 2 * EDGE) * Math.log1p(at)) / most
  const marks = [60, 3600, 86_400].filter((at) => at < seconds.at(-1)!)
  return (
    <svg
      class="schedule-drawing"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      role="img"
      aria-label={`${seconds.length} attempts within ${duration(seconds.at(-1)!)}`}
    >
      <line x1={EDGE} x2={WIDTH - EDGE} y1="16" y2="16" class="axis" />
      {marks.map((at) => (
        <g key={at}>
          <line x1={x(at)} x2={x(at)} y1="10" y2="28" class="axis" />
          <text x={x(at)} y="42" text-anchor="middle">
            {duration(at)}
          </text>
        </g>
      ))}
      {seconds.map((at, i) => (
        <circle key={i} cx={x(at)} cy="16" r={i === 0 ? 6 : 4.5}>
          <title>{i === 0 ? "first attempt" : `retry ${i}: ${duration(at)} after the first`}</title>
        </circle>
      ))}
    </svg>
  )
}

/** The health of an endpoint, as a word with a tone. */
import { localTime } from "../format.ts"
import type { EndpointHealth } from "../types.ts"
import { Badge, type Tone } from "../ui/basics.tsx"

export type HealthState = EndpointHealth["health"]

/** From the worst to the best, in the order of the overview's list of endpoints. */
export const HEALTH_STATES = [
  "open",
  "failing",
  "offline",
  "degraded",
  "disabled",
  "paused",
  "healthy",
] as const satisfies readonly HealthState[]

const SHOWN: { readonly [H in HealthState]: readonly [Tone, string] } = {
  offline: ["bad", "offline"],
  open: ["bad", "breaker open"],
  failing: ["bad", "failing"],
  disabled: ["warn", "disabled"],
  degraded: ["warn", "degraded"],
  paused: ["idle", "paused"],
  healthy: ["good", "healthy"],
}

export const healthWord = (health: HealthState): string => SHOWN[health][1]

export function HealthBadge({ health }: { readonly health: HealthState }) {
  const [tone, word] = SHOWN[health]
  return <Badge tone={tone}>{word}</Badge>
}

const DATE = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)/

/** The server's sentence about it, with its dates in the reader's zone. */
export function Why({ text }: { readonly text: string }) {
  const parts = text.replace(/^./, (letter) => letter.toUpperCase()).split(DATE)
  return (
    <>
      {parts.map((part, i) =>
        i % 2 === 0 ? (
          part
        ) : (
          <time key={i} dateTime={part} title={part}>
            {localTime(Date.parse(part))}
          </time>
        ),
      )}
    </>
  )
}

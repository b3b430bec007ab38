/** When a delivery is tried next, why it waits, and what an operator can do about it. */
import { page } from "../api.ts"
import { now } from "../clock.ts"
import { duration, localTime } from "../format.ts"
import type { Delivery } from "../types.ts"
import { WAITS } from "./words.ts"

type Waiting = Pick<Delivery, "nextAttempt"> & { readonly waitReason: NonNullable<Delivery["waitReason"]> }

/** The advice for these reasons names buttons that the portal lacks. */
const OPERATORS_ADVICE: ReadonlySet<Waiting["waitReason"]> = new Set(["scheduled", "retry", "held"])

/** An item of the timeline of attempts. */
export function NextAttempt({ nextAttempt, waitReason }: Waiting) {
  const { because, change } = WAITS[waitReason]
  const isAdvised = page.value === "dashboard" || !OPERATORS_ADVICE.has(waitReason)
  return (
    <li class="info">
      <p>
        <strong>{headline(nextAttempt, waitReason)}</strong>{" "}
        {nextAttempt !== null && <span class="faint">({localTime(Date.parse(nextAttempt))})</span>}
      </p>
      <p>
        It waits because {because}.{isAdvised && ` ${change}`}
      </p>
    </li>
  )
}

function headline(nextAttempt: string | null, reason: Waiting["waitReason"]): string {
  if (reason === "sending") return "An attempt is in flight"
  if (nextAttempt === null) return "No next attempt is set"
  const seconds = Math.ceil((Date.parse(nextAttempt) - now.value) / 1000)
  if (reason === "agent") return `It is given up in ${duration(seconds)} unless the agent connects`
  if (reason === "behind")
    return seconds <= 0 ? "Its turn has not come" : `Not before ${duration(seconds)} from now`
  return seconds <= 0 ? "The next attempt is due" : `Next attempt in ${duration(seconds)}`
}

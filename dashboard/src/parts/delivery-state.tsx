/** The state of a delivery in a badge, with why it waits or was given up. */
import type { Attempt, Delivery } from "../types.ts"
import { Badge, Time } from "../ui/basics.tsx"
import { causeSentence, causeTitle, DEAD, DEAD_TITLES, STATUSES, WAITS } from "./words.ts"

type State = Pick<Delivery, "status"> & Partial<Pick<Delivery, "deadReason" | "waitReason">>

export function DeliveryState({ status, deadReason, waitReason }: State) {
  const [, word, tone] = STATUSES.find(([one]) => one === status)!
  if (waitReason === "sending") return <Badge tone="info">sending</Badge>
  const why =
    deadReason != null
      ? `Given up: ${DEAD[deadReason]}.`
      : waitReason != null
        ? `Waits: ${WAITS[waitReason].because}.`
        : undefined
  return (
    <span title={why}>
      <Badge tone={tone}>{deadReason == null ? word : `dead: ${DEAD_TITLES[deadReason]}`}</Badge>
    </span>
  )
}

/** When the next attempt starts, or why none is known to. */
export function Next({ nextAttempt, waitReason }: Pick<Delivery, "nextAttempt" | "waitReason">) {
  if (waitReason === null) return <span class="faint">–</span>
  const { because } = WAITS[waitReason]
  return (
    <div title={`It waits because ${because}.`}>
      {nextAttempt === null || waitReason === "agent" ? null : <Time at={nextAttempt} />}
      <div class="faint nowrap">{WAIT_TITLES[waitReason]}</div>
    </div>
  )
}

export const WAIT_TITLES: { readonly [R in NonNullable<Delivery["waitReason"]>]: string } = {
  sending: "being sent",
  due: "due",
  scheduled: "scheduled",
  retry: "after a failure",
  behind: "behind another",
  held: "held by Retry-After",
  breaker: "breaker open",
  budget: "retry budget spent",
  agent: "agent not connected",
  paused: "endpoint paused",
  disabled: "endpoint disabled",
  deleted: "endpoint deleted",
}

/** "HTTP 503", or why no answer came. */
export function Answer({
  attempt,
}: {
  readonly attempt: Pick<Attempt, "responseStatusCode" | "error" | "status">
}) {
  const { responseStatusCode: code, error, status } = attempt
  const tone = status === 0 ? "good" : "bad"
  // An agent's success has no HTTP status.
  const words = error !== null ? causeTitle(error) : status === 0 ? "taken by the agent" : "no outcome known"
  return (
    <span title={error === null ? undefined : causeSentence(error)}>
      <Badge tone={tone}>
        {code === 0 ? words : error === null ? `HTTP ${code}` : `HTTP ${code}, ${words}`}
      </Badge>
    </span>
  )
}

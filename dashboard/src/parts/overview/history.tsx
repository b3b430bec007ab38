/** Dead letters by reason, retries by attempt number, and the last day. */

import { exactNumber, number, percent, words } from "../../format.ts"
import { toDeadLetters } from "../../links.ts"
import type { Overview } from "../../types.ts"
import { Bars } from "../../ui/bars.tsx"
import { Card, Empty, Time } from "../../ui/basics.tsx"
import { AttemptsByHour } from "../attempts-by-hour.tsx"
import { DEAD_TITLES } from "../words.ts"

interface Props {
  readonly overview: Overview
}

export function DeadLettersByReason({ overview: { deadLetters } }: Props) {
  return (
    <Card title="Dead letters" aside={<a href={toDeadLetters()}>sort them out</a>}>
      {deadLetters.length === 0 ? (
        <Empty title="No dead letters.">
          <p>A delivery that is given up is kept here until somebody sends it again or discards it.</p>
        </Empty>
      ) : (
        <Bars
          rows={deadLetters.map(({ reason, count, oldestAt }) => ({
            key: reason,
            title: (
              <a href={toDeadLetters({ dead_reason: reason })}>
                {DEAD_TITLES[reason as keyof typeof DEAD_TITLES] ?? words(reason)}
              </a>
            ),
            value: count,
            tone: "bad",
            amount: (
              <>
                {exactNumber(count)}{" "}
                <span class="faint">
                  the oldest <Time at={oldestAt} />
                </span>
              </>
            ),
          }))}
        />
      )}
    </Card>
  )
}

/** The API adds up all attempts from this one on. */
export const LAST_NUMBER = 20

export function RetriesByNumber({ overview: { attempts } }: Props) {
  return (
    <Card title="Success by attempt" aside="the last 24 hours">
      {attempts.length === 0 ? (
        <Empty title="No attempts in the last 24 hours." />
      ) : (
        <Bars
          whole={1}
          rows={attempts.map(({ number: n, attempts: all, succeeded }) => ({
            key: `${n}`,
            title: n === 1 ? "first attempt" : `retry ${n - 1}${n === LAST_NUMBER ? " and later" : ""}`,
            value: succeeded / all,
            tone: "good",
            amount: (
              <>
                {percent(succeeded, all)} <span class="faint">of {number(all)}</span>
              </>
            ),
          }))}
        />
      )}
    </Card>
  )
}

export function LastDay({ overview: { hours } }: Props) {
  return (
    <Card title="The last 24 hours" aside="by the hour">
      <AttemptsByHour hours={hours} />
    </Card>
  )
}

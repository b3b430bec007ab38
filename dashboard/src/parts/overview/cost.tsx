/** The cost of retries: of the last day from the overview, which is read anyway; of the last week on request. */
import { useState } from "preact/hooks"
import { bytes, duration, exactNumber, percent, plural } from "../../format.ts"
import { useResource } from "../../resource.ts"
import type { CostReport, Overview } from "../../types.ts"
import { Button, Card, Empty, Fact, Facts, Failure, Skeleton } from "../../ui/basics.tsx"
import { LAST_NUMBER } from "./history.tsx"

/** The report adds up a week of hourly sums, which takes seconds with thousands of busy endpoints: it is not read live. */
export function CostOfRetries({ overview }: { readonly overview: Overview }) {
  const [isAsked, setAsked] = useState(false)
  const { data, error, reload } = useResource<CostReport>(isAsked ? "/statistics/cost" : null)
  return (
    <Card title="Cost of failures" aside={isAsked ? "the last 7 days" : "the last 24 hours"}>
      {!isAsked ? (
        <LastDay attempts={overview.attempts} showWeek={() => setAsked(true)} />
      ) : data !== null ? (
        <LastWeek report={data} />
      ) : error !== null ? (
        <Failure error={error} retry={reload} />
      ) : (
        <Skeleton lines={4} />
      )}
    </Card>
  )
}

function LastDay({
  attempts: byNumber,
  showWeek,
}: {
  readonly attempts: Overview["attempts"]
  readonly showWeek: () => void
}) {
  const sum = (rows: Overview["attempts"], of: "attempts" | "succeeded") =>
    rows.reduce((total, row) => total + row[of], 0)
  const [attempts, succeeded] = [sum(byNumber, "attempts"), sum(byNumber, "succeeded")]
  const retries = byNumber.filter(({ number }) => number > 1)
  const made = sum(retries, "attempts")
  return (
    <>
      {attempts === 0 ? (
        <Empty title="No attempts in the last 24 hours." />
      ) : (
        <>
          <Wasted attempts={attempts} delivered={succeeded} share={(attempts - succeeded) / attempts} />
          <Facts>
            <Fact name="Retries">{exactNumber(made)}</Fact>
            <Fact name="Retries that delivered">
              {made === 0 ? "–" : percent(sum(retries, "succeeded"), made)}
            </Fact>
          </Facts>
        </>
      )}
      <Button onClick={showWeek}>Show the report of 7 days</Button>
    </>
  )
}

function Wasted(props: { readonly attempts: number; readonly delivered: number; readonly share: number }) {
  const { attempts, delivered, share } = props
  return (
    <p>
      {plural(attempts, "attempt")} for {plural(delivered, "delivery", "deliveries")}: {percent(share, 1)} of
      them delivered nothing.
    </p>
  )
}

function LastWeek({ report: { total, currency, byAttempt } }: { readonly report: CostReport }) {
  const { attempts, delivered, retries, wastedShare, retrySuccessRate, slotSeconds, bytesOut, price } = total
  if (attempts === 0) return <Empty title="No attempts in the last 7 days." />
  const last = byAttempt.at(-1)
  return (
    <>
      <Wasted attempts={attempts} delivered={delivered} share={wastedShare ?? 0} />
      <Facts>
        <Fact name="Retries">{exactNumber(retries)}</Fact>
        <Fact name="Retries that delivered">
          {retrySuccessRate === null ? "–" : percent(retrySuccessRate, 1)}
        </Fact>
        <Fact name="Time of senders">{duration(slotSeconds)}</Fact>
        <Fact name="Payloads sent">{bytes(bytesOut)}</Fact>
        {price !== null && (
          <Fact name="Price">
            {price.toFixed(2)} {currency}
          </Fact>
        )}
        {last !== undefined && last.number > 1 && (
          <Fact name={`Attempt ${last.number}${last.number === LAST_NUMBER ? " and later" : ""}`}>
            {percent(last.costShare, 1)} of the cost, {percent(last.deliveredShare ?? 0, 1)} of the deliveries
          </Fact>
        )}
      </Facts>
      {price === null && (
        <p class="hint">Without prices in the settings of the server, the cost is counted in attempts.</p>
      )}
    </>
  )
}

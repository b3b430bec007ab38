/** The page that an operator opens first: whether all is well, and if not, what is wrong. */
import { Attention } from "../parts/overview/attention.tsx"
import { CostOfRetries } from "../parts/overview/cost.tsx"
import { Figures } from "../parts/overview/figures.tsx"
import { DeadLettersByReason, LastDay, RetriesByNumber } from "../parts/overview/history.tsx"
import { LiveRates } from "../parts/overview/rates.tsx"
import { EndpointsByHealth } from "../parts/overview/troubled.tsx"
import { type List, useResource } from "../resource.ts"
import type { Alert, Overview as OverviewData } from "../types.ts"
import { Failure, Heading, Skeleton } from "../ui/basics.tsx"

const MOST_ALERTS = 250

export function Overview() {
  const { data, error, reload } = useResource<OverviewData>("/overview", {}, { live: true })
  const alerts = useResource<List<Alert>>("/alert", { state: "firing", limit: MOST_ALERTS }, { live: true })
  return (
    <>
      <Heading title="Overview" />
      {error !== null && <Failure error={error} retry={reload} />}
      {data === null ? (
        error === null && <Skeleton lines={6} />
      ) : (
        <>
          <Attention overview={data} alerts={alerts.data?.data ?? []} />
          <Figures overview={data} />
        </>
      )}
      <LiveRates />
      {data !== null && (
        <>
          <EndpointsByHealth overview={data} />
          <div class="grid">
            <DeadLettersByReason overview={data} />
            <RetriesByNumber overview={data} />
            <CostOfRetries overview={data} />
            <LastDay overview={data} />
          </div>
        </>
      )}
    </>
  )
}

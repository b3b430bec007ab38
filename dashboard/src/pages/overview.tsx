/** The page that an operator opens first: it says whether all is well, and lists the problems. */
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
  // The alerts stand above the rest, which would jump when they come later.
  const shown = alerts.isLoading ? null : data
  return (
    <>
      <Heading title="Overview" />
      {error !== null && <Failure error={error} retry={reload} />}
      {shown === null ? (
        error === null && <Skeleton lines={6} />
      ) : (
        <>
          <Attention overview={shown} alerts={alerts.data?.data ?? []} />
          <Figures overview={shown} />
        </>
      )}
      {(shown !== null || error !== null) && <LiveRates />}
      {shown !== null && (
        <>
          <EndpointsByHealth overview={shown} />
          <div class="grid">
            <DeadLettersByReason overview={shown} />
            <RetriesByNumber overview={shown} />
            <CostOfRetries overview={shown} />
            <LastDay overview={shown} />
          </div>
        </>
      )}
    </>
  )
}

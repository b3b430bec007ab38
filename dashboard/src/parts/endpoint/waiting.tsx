/** The deliveries that wait for an endpoint, and the reasons. */
import { api } from "../../api.ts"
import { number, plural } from "../../format.ts"
import { toDeadLetters, toDeliveries } from "../../links.ts"
import { refreshNow } from "../../refresh.ts"
import { type List, useResource } from "../../resource.ts"
import type { Lane } from "../../types.ts"
import { Button, Card, Empty, Fact, Facts, Failure, Skeleton, Time } from "../../ui/basics.tsx"
import { ask } from "../../ui/dialog.tsx"
import { notify } from "../../ui/notices.tsx"
import { atLeast } from "../lanes.tsx"
import { WAITS } from "../words.ts"
import type { OfEndpoint } from "./context.ts"

export function Waiting({ of }: { readonly of: OfEndpoint }) {
  const filter = { app_id: of.appId, endpoint_id: of.endpoint.id }
  const { data, error, reload } = useResource<List<Lane>>(
    "/lane",
    { ...filter, bounded: true },
    { live: true },
  )
  const lane = data?.data[0] ?? null
  return (
    <Card
      title="Waiting deliveries"
      aside={<a href={toDeliveries({ endpoint_id: of.endpoint.id })}>all deliveries</a>}
    >
      {error !== null && <Failure error={error} retry={reload} />}
      {data === null ? (
        error === null && <Skeleton lines={4} />
      ) : lane === null ? (
        <Empty title="Nothing waits.">
          <p>
            Every delivery was made or given up. <a href={toDeadLetters(filter)}>Its dead letters</a>
          </p>
        </Empty>
      ) : (
        <>
          <WaitsFor lane={lane} />
          {!of.endpoint.disabled && !of.endpoint.paused && (
            <Button needs="Change" kind="primary" onClick={() => askToSendNow(of)}>
              Send all that waits now
            </Button>
          )}
        </>
      )}
    </Card>
  )
}

function WaitsFor({ lane }: { readonly lane: Lane }) {
  const { reason, waiting, retrying, sending, isLowerBound, oldestAt, nextDueAt, endpointId } = lane
  const { because, change } = WAITS[reason]
  const link = (status: string, count: number) =>
    count === 0 ? "0" : <a href={toDeliveries({ endpoint_id: endpointId, status })}>{atLeast(lane, count)}</a>
  return (
    <>
      <p class="lead">
        {isLowerBound && "At least "}
        {plural(waiting + retrying, "delivery waits", "deliveries wait")} because {because}. {change}
      </p>
      <Facts>
        <Fact name="For the first attempt">{link("pending", waiting)}</Fact>
        <Fact name="For a retry">{link("failed", retrying)}</Fact>
        <Fact name="In flight">{number(sending)}</Fact>
        <Fact name="The oldest was received">
          <Time at={oldestAt} />
        </Fact>
        <Fact name={reason === "agent" ? "Given up unless the agent connects" : "Next attempt"}>
          <Time at={nextDueAt} />
        </Fact>
      </Facts>
    </>
  )
}

interface WaitingCount {
  readonly count: number
  /** Null: all were counted. */
  readonly searchedTo: string | null
}

async function askToSendNow({ appId, endpoint }: OfEndpoint): Promise<void> {
  const filter = { app_id: appId, endpoint_id: endpoint.id }
  const { count, searchedTo } = await api.get<WaitingCount>("/delivery/count-waiting", {
    ...filter,
    bounded: true,
  })
  const isMore = searchedTo !== null
  if (count === 0 && !isMore) {
    notify("warn", "Nothing can be sent now: what waits was scheduled for later, or is in flight.")
    return
  }
  ask({
    title: "Send all that waits now?",
    text: (
      <>
        <p>
          {isMore && "At least "}
          {plural(count, "delivery is", "deliveries are")} sent at once. No attempt is counted, and an ordered
          endpoint keeps its order.
        </p>
        <p>The circuit breaker closes, the retry budget is filled, and a Retry-After ends.</p>
      </>
    ),
    action: "Send now",
    run: async () => {
      await api.post("/delivery/send-now", filter)
      notify(
        "good",
        `${isMore ? "At least " : ""}${plural(count, "delivery is", "deliveries are")} being sent.`,
      )
      refreshNow()
    },
  })
}

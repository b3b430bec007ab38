/** One delivery: its attempts so far, its next attempt, and why it waits. */
import { useState } from "preact/hooks"
import { pathTo } from "../api.ts"
import { toDeliveries, toEndpoint, toEventType, toMessage } from "../links.ts"
import { ApplicationLink } from "../parts/applications.tsx"
import { Attempts } from "../parts/attempts.tsx"
import { cancelDelivery, RescheduleDialog, retryDelivery } from "../parts/delivery-actions.tsx"
import { DeliveryState } from "../parts/delivery-state.tsx"
import { Above, Detail } from "../parts/detail.tsx"
import { NextAttempt } from "../parts/next-attempt.tsx"
import { DEAD } from "../parts/words.ts"
import { useResource } from "../resource.ts"
import type { PageProps } from "../routed.tsx"
import type { DeliveryDetail, Endpoint, Message } from "../types.ts"
import { Badge, Button, Card, Fact, Facts, Failure, Heading, Id, Skeleton, Time } from "../ui/basics.tsx"
import { Payload } from "../ui/payload.tsx"

const LIST = { href: toDeliveries(), title: "Deliveries" }

export function DeliveryPage({ params: { id = "" } }: PageProps) {
  const delivery = useResource<DeliveryDetail>(pathTo("/delivery", id), {}, { live: true })
  return (
    <Detail
      of={delivery}
      what="delivery"
      why="Finished deliveries are removed when their retention ends, by default after 30 or 90 days."
      list={LIST}
    >
      {(data) => <Shown delivery={data} reload={delivery.reload} />}
    </Detail>
  )
}

function Shown({ delivery, reload }: { readonly delivery: DeliveryDetail; readonly reload: () => void }) {
  const { id, appId, endpointId, msgId, status, waitReason } = delivery
  const [isRescheduling, setRescheduling] = useState(false)
  const isLive = status === "pending" || status === "failed"
  const message = useResource<Message>(pathTo("/app", appId, "/msg", msgId))
  const endpoint = useResource<Endpoint>(pathTo("/app", appId, "/endpoint", endpointId))
  const own = useResource<{ readonly headers: { readonly [name: string]: string } }>(
    pathTo("/app", appId, "/endpoint", endpointId, "/headers"),
  )
  return (
    <>
      <Heading
        above={<Above list={LIST} />}
        title={
          <>
            Delivery of {delivery.eventType} <DeliveryState {...delivery} />
          </>
        }
      >
        <Button needs="Change" kind="primary" onClick={() => retryDelivery(delivery, reload)}>
          {isLive ? "Retry now" : "Send again"}
        </Button>
        {isLive && (
          <>
            <Button needs="Change" onClick={() => setRescheduling(true)}>
              Reschedule
            </Button>
            <Button needs="Change" kind="danger" onClick={() => cancelDelivery(id, reload)}>
              Cancel
            </Button>
          </>
        )}
      </Heading>
      {isRescheduling && <RescheduleDialog id={id} reload={reload} onClose={() => setRescheduling(false)} />}
      <Card>
        <Overview delivery={delivery} endpoint={endpoint.data} isDeleted={endpoint.error?.status === 404} />
      </Card>
      <Card title="Timeline" aside="the newest first">
        <Attempts
          key={id}
          {...delivery}
          hasOlder={delivery.attempts.length >= MOST_WITH_DELIVERY}
          headers={own.data?.headers ?? {}}
          next={
            waitReason === null ? (
              <End delivery={delivery} />
            ) : (
              <NextAttempt {...delivery} waitReason={waitReason} />
            )
          }
          first={
            <li>
              <p>
                <strong>Received</strong> <Time at={delivery.receivedAt} />
              </p>
            </li>
          }
        />
      </Card>
      <Card title="Payload">
        {message.data !== null ? (
          <Payload label="Payload" value={message.data.payload} />
        ) : message.error === null ? (
          <Skeleton />
        ) : (
          <Failure error={message.error} retry={message.reload} />
        )}
      </Card>
    </>
  )
}

/** As many attempts come with a delivery. */
const MOST_WITH_DELIVERY = 50

function Overview({
  delivery,
  endpoint,
  isDeleted,
}: {
  readonly delivery: DeliveryDetail
  readonly endpoint: Endpoint | null
  readonly isDeleted: boolean
}) {
  const { id, appId, endpointId, msgId, attemptCount, priority, sessionId, error } = delivery
  const most =
    delivery.maxAttempts ??
    (endpoint?.policy as { readonly maxAttempts?: number | null } | undefined)?.maxAttempts ??
    null
  return (
    <Facts>
      <Fact name="Delivery">
        <Id id={id} />
      </Fact>
      <Fact name="Endpoint">
        <a href={toEndpoint(appId, endpointId)}>{delivery.url}</a>
        {isDeleted && <Badge tone="warn">deleted</Badge>}
      </Fact>
      <Fact name="Message">
        <Id id={msgId} href={toMessage(appId, msgId)} />
      </Fact>
      <Fact name="Event type">
        <a href={toEventType(delivery.eventType)}>{delivery.eventType}</a>
      </Fact>
      <Fact name="Application">
        <ApplicationLink id={appId} />
      </Fact>
      <Fact name="Attempts">{most === null ? attemptCount : `${attemptCount} of at most ${most}`}</Fact>
      <Fact name="Received">
        <Time at={delivery.receivedAt} />
      </Fact>
      {delivery.lastAttemptedAt !== null && (
        <Fact name="Last attempt">
          <Time at={delivery.lastAttemptedAt} />
        </Fact>
      )}
      {priority !== "normal" && <Fact name="Priority">{priority}</Fact>}
      {sessionId !== null && <Fact name="Session">{sessionId}</Fact>}
      {error !== null && <Fact name="Last error">{error}</Fact>}
    </Facts>
  )
}

/** How a finished delivery ended. */
function End({
  delivery: { status, deadReason, deliveredAt, discardedAt },
}: {
  readonly delivery: DeliveryDetail
}) {
  if (status === "delivered")
    return (
      <li class="good">
        <p>
          <strong>Delivered</strong> <Time at={deliveredAt} />
        </p>
      </li>
    )
  return (
    <li class="bad">
      <p>
        <strong>Given up</strong> because {DEAD[deadReason!]}.
      </p>
      <p>
        No attempt follows by itself. “Send again” starts at the first attempt.
        {discardedAt !== null && (
          <>
            {" "}
            Discarded <Time at={discardedAt} />.
          </>
        )}
      </p>
    </li>
  )
}

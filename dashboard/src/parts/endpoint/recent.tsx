/** The newest attempts of an endpoint. */
import { page, pathTo } from "../../api.ts"
import { duration } from "../../format.ts"
import { toDelivery, toMessage } from "../../links.ts"
import { type List, useResource } from "../../resource.ts"
import type { Attempt } from "../../types.ts"
import { Badge, Card, Empty, Id, Time } from "../../ui/basics.tsx"
import { ListView } from "../../ui/table.tsx"
import { Answer } from "../delivery-state.tsx"
import type { OfEndpoint } from "./context.ts"

const SHOWN = 10

export function RecentAttempts({ of }: { readonly of: OfEndpoint }) {
  const { appId, endpoint } = of
  const list = useResource<List<Attempt>>(
    pathTo("/app", appId, "/attempt/endpoint", endpoint.id),
    { limit: SHOWN, with_msg: true, with_content: false },
    { live: true },
  )
  const inPortal = page.value === "portal"
  const hrefOf = ({ deliveryId, msgId }: Attempt) =>
    inPortal ? toMessage(appId, msgId) : toDelivery(deliveryId)
  // There is one page of them: the lists of deliveries and messages have all.
  const only = list.data === null ? null : { ...list.data, done: true }
  return (
    <Card title="Recent attempts" aside={`the newest ${SHOWN}`}>
      <ListView
        label="Recent attempts"
        list={{ ...list, data: only }}
        keyOf={({ id }) => id}
        hrefOf={hrefOf}
        columns={[
          { title: "When", cell: ({ timestamp }) => <Time at={timestamp} /> },
          {
            title: "Answer",
            cell: (attempt) => (
              <>
                <Answer attempt={attempt} />
                {attempt.triggerType === 1 && (
                  <>
                    {" "}
                    <Badge tone="info">by hand</Badge>
                  </>
                )}
              </>
            ),
          },
          {
            title: "Took",
            align: "right",
            minor: true,
            cell: ({ responseDurationMs }) => duration(responseDurationMs / 1000),
          },
          { title: "Event type", minor: true, cell: ({ msg }) => msg?.eventType ?? "" },
          {
            title: inPortal ? "Message" : "Delivery",
            cell: (attempt) => (
              <Id id={inPortal ? attempt.msgId : attempt.deliveryId} href={hrefOf(attempt)} />
            ),
          },
        ]}
        empty={
          <Empty title="No attempts yet.">
            <p>A message of one of its event types makes the first one.</p>
          </Empty>
        }
      />
    </Card>
  )
}

/** A message at each of its endpoints: state, attempts, and sending it again. */
import { useState } from "preact/hooks"
import { api, page, pathTo } from "../api.ts"
import { plural } from "../format.ts"
import { toDelivery, toEndpoint } from "../links.ts"
import { type List, useResource } from "../resource.ts"
import type { Attempt, Endpoint, MessageEndpoint } from "../types.ts"
import { Badge, Button, Card, Empty, Failure, Skeleton } from "../ui/basics.tsx"
import { ask, FormDialog } from "../ui/dialog.tsx"
import { ChoiceField, textOf } from "../ui/forms.tsx"
import { notify } from "../ui/notices.tsx"
import { Attempts } from "./attempts.tsx"
import { DeliveryState, WAIT_TITLES } from "./delivery-state.tsx"
import { NextAttempt } from "./next-attempt.tsx"

interface Of {
  readonly appId: string
  readonly msgId: string
}

/** Of the list, and of the attempts that are read at once. */
const MOST = 50

export function MessageEndpoints({ appId, msgId }: Of) {
  const [limit, setLimit] = useState(MOST)
  const [isSending, setSending] = useState(false)
  const { data, error, reload } = useResource<List<MessageEndpoint>>(
    pathTo("/app", appId, "/msg", msgId, "/endpoint"),
    { expanded_statuses: true, limit },
    { live: true },
  )
  return (
    <Card
      title="Endpoints"
      aside={
        <Button needs="CreateAttempts" onClick={() => setSending(true)}>
          Send to an endpoint
        </Button>
      }
    >
      {isSending && <SendTo appId={appId} msgId={msgId} onDone={reload} onClose={() => setSending(false)} />}
      {error !== null && <Failure error={error} retry={reload} />}
      {data === null && error === null && <Skeleton />}
      {data?.data.length === 0 && (
        <Empty title="No endpoint gets this message.">
          <p>
            No enabled endpoint of the application subscribed to its event type and channels when it came.
          </p>
        </Empty>
      )}
      {data?.data.map((one) => (
        <AtEndpoint
          key={one.id}
          appId={appId}
          msgId={msgId}
          at={one}
          isOpen={data.data.length === 1}
          reload={reload}
        />
      ))}
      {data !== null && !data.done && limit < 250 && <Button onClick={() => setLimit(250)}>Show more</Button>}
    </Card>
  )
}

function AtEndpoint({
  appId,
  msgId,
  at,
  isOpen: isOpenAtFirst,
  reload,
}: Of & { readonly at: MessageEndpoint; readonly isOpen: boolean; readonly reload: () => void }) {
  const [isOpen, setOpen] = useState(isOpenAtFirst)
  return (
    <details class="at-endpoint" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class="row">
        <DeliveryState status={at.deliveryStatus} waitReason={at.waitReason ?? null} />
        {at.statusText === "canceled" && <Badge tone="idle">cancelled</Badge>}
        <span class="url">{at.url}</span>
        {at.waitReason != null && at.waitReason !== "sending" && (
          <span class="faint">{WAIT_TITLES[at.waitReason]}</span>
        )}
      </summary>
      {isOpen && (
        <div class="stack">
          <div class="row">
            <a href={toEndpoint(appId, at.id)}>Open the endpoint</a>
            {page.value === "dashboard" && <a href={toDelivery(at.deliveryId)}>Open the delivery</a>}
            <Button needs="CreateAttempts" onClick={() => askResend(appId, msgId, at, reload)}>
              Resend
            </Button>
          </div>
          <AttemptsAt appId={appId} msgId={msgId} at={at} />
        </div>
      )}
    </details>
  )
}

function AttemptsAt({ appId, msgId, at }: Of & { readonly at: MessageEndpoint }) {
  const { data, error, reload } = useResource<List<Attempt>>(
    pathTo("/app", appId, "/attempt/msg", msgId),
    { endpoint_id: at.id, limit: MOST, expanded_statuses: true },
    { live: true },
  )
  if (data === null) return error === null ? <Skeleton /> : <Failure error={error} retry={reload} />
  const next = at.waitReason != null && (
    <NextAttempt nextAttempt={at.nextAttempt ?? null} waitReason={at.waitReason} />
  )
  if (data.data.length === 0 && !next) return <p class="faint">No attempt was made.</p>
  return (
    <Attempts
      appId={appId}
      msgId={msgId}
      endpointId={at.id}
      attempts={data.data}
      hasOlder={!data.done}
      next={next || null}
    />
  )
}

function askResend(
  appId: string,
  msgId: string,
  { id, url }: { id: string; url: string },
  reload: () => void,
): void {
  ask({
    title: "Send the message again?",
    text: <p>{url} gets it again, with the same id. Its attempts begin at the first.</p>,
    action: "Resend",
    run: () => resend(appId, msgId, id, reload),
  })
}

async function resend(appId: string, msgId: string, endpointId: string, reload: () => void): Promise<void> {
  await api.post(pathTo("/app", appId, "/msg", msgId, "/endpoint", endpointId, "/resend"))
  notify("good", "The message is on its way again.")
  reload()
}

/** To any endpoint of the application, including endpoints that did not subscribe to it. */
function SendTo({
  appId,
  msgId,
  onDone,
  onClose,
}: Of & { readonly onDone: () => void; readonly onClose: () => void }) {
  const { data } = useResource<List<Endpoint>>(pathTo("/app", appId, "/endpoint"), { limit: 250 })
  const choices = (data?.data ?? []).map(
    ({ id, url, uid }) => [id, uid == null ? url : `${uid}: ${url}`] as const,
  )
  return (
    <FormDialog
      title="Send the message to an endpoint"
      submit="Send"
      onSubmit={async (values) => {
        const endpointId = textOf(values, "endpoint")
        if (endpointId === null) throw new Error("Choose an endpoint.")
        await resend(appId, msgId, endpointId, onDone)
      }}
      onClose={onClose}
    >
      <ChoiceField
        name="endpoint"
        label="Endpoint"
        choices={choices}
        hint={`${plural(choices.length, "endpoint")} of the application. It gets the message even if it did not subscribe to it.`}
      />
    </FormDialog>
  )
}

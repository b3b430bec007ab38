/** One message with its endpoints, for the dashboard and the portal. */
import type { ComponentChildren } from "preact"
import { page, pathTo } from "../api.ts"
import { toEventType, toMessages, toSource } from "../links.ts"
import { useResource } from "../resource.ts"
import type { Message } from "../types.ts"
import { Badge, Card, Fact, Facts, Heading, Id, Time } from "../ui/basics.tsx"
import { HeaderList, Payload } from "../ui/payload.tsx"
import { Detail } from "./detail.tsx"
import { MessageEndpoints } from "./message-endpoints.tsx"

interface MessageViewProps {
  readonly appId: string
  readonly id: string
  /** More facts. */
  readonly facts?: ComponentChildren
}

export function MessageView({ appId, id, facts }: MessageViewProps) {
  const found = useResource<Message>(pathTo("/app", appId, "/msg", id))
  return (
    <Detail
      of={found}
      what="message"
      why="Messages are removed when the retention of all their deliveries ends."
      list={{ href: toList(appId), title: "Messages" }}
    >
      {(message) => <Shown appId={appId} message={message} facts={facts} />}
    </Detail>
  )
}

function toList(appId: string, filters = {}): string {
  return toMessages(page.value === "portal" ? filters : { app_id: appId, ...filters })
}

interface ShownProps {
  readonly appId: string
  readonly message: Message
  readonly facts: ComponentChildren
}

function Shown({ appId, message: data, facts }: ShownProps) {
  const { eventType, eventId, channels, tags, sessionId, metadata, priority, inbound } = data
  return (
    <>
      <Heading above={<a href={toList(appId)}>Messages</a>} title={`Message ${eventType}`} />
      <Card>
        <Facts>
          <Fact name="Message">
            <Id id={data.id} />
          </Fact>
          {eventId != null && <Fact name="Event id">{eventId}</Fact>}
          <Fact name="Event type">
            <a href={toEventType(eventType)}>{eventType}</a>
          </Fact>
          {facts}
          <Fact name="Received">
            <Time at={data.timestamp} />
          </Fact>
          {data.deliverAt != null && (
            <Fact name="Not before">
              <Time at={data.deliverAt} />
            </Fact>
          )}
          {tags !== null && (
            <Fact name="Tags">
              {tags.map((tag) => (
                <a key={tag} class="tag" href={toList(appId, { tag })}>
                  {tag}
                </a>
              ))}
            </Fact>
          )}
          {channels !== null && <Fact name="Channels">{channels.join(", ")}</Fact>}
          {sessionId != null && <Fact name="Session">{sessionId}</Fact>}
          {priority !== undefined && priority !== "normal" && <Fact name="Priority">{priority}</Fact>}
          {Object.entries(metadata ?? {}).map(([name, value]) => (
            <Fact key={name} name={name}>
              {value}
            </Fact>
          ))}
        </Facts>
      </Card>
      <MessageEndpoints appId={appId} msgId={data.id} />
      <Card title="Payload">
        <Payload label="Payload" value={data.payload} />
      </Card>
      {inbound !== undefined && <InboundRequest appId={appId} request={inbound} />}
    </>
  )
}

function InboundRequest({
  appId,
  request,
}: {
  readonly appId: string
  readonly request: NonNullable<Message["inbound"]>
}) {
  const { sourceId, method, path, query, headers, sensitive } = request
  return (
    <Card title="The request that brought it" aside={<Badge tone="info">through a source</Badge>}>
      <Facts>
        <Fact name="Source">
          <Id id={sourceId} href={toSource(appId, sourceId)} />
        </Fact>
        <Fact name="Request">
          {method} {path === "" ? "/" : path}
          {query}
        </Fact>
      </Facts>
      <h3>Headers</h3>
      <HeaderList label="Headers of the request" headers={headers} />
      {sensitive.length > 0 && (
        <p class="hint">Not shown, because they may hold secrets: {sensitive.join(", ")}.</p>
      )}
    </Card>
  )
}

/** The messages of the portal's application. */
import { MessageList } from "../parts/message-list.tsx"
import { MessageView } from "../parts/message-view.tsx"
import type { PageProps } from "../routed.tsx"
import { session } from "../session.ts"
import { Empty, Heading } from "../ui/basics.tsx"

function ownApplication(): string {
  const state = session.value
  return (state.kind === "signed-in" && state.who.appId) || ""
}

export function PortalMessages() {
  return (
    <>
      <Heading title="Messages" />
      <MessageList
        appId={ownApplication()}
        empty={
          <Empty title="No messages yet.">
            <p>A message appears here as soon as something happens that you can subscribe to.</p>
          </Empty>
        }
      />
    </>
  )
}

export function PortalMessage({ params: { id = "" } }: PageProps) {
  return <MessageView appId={ownApplication()} id={id} />
}

/** One message: its payload, its origin, and its deliveries. */
import { ApplicationLink } from "../parts/applications.tsx"
import { MessageView } from "../parts/message-view.tsx"
import type { PageProps } from "../routed.tsx"
import { Fact } from "../ui/basics.tsx"

export function MessagePage({ params: { app = "", id = "" } }: PageProps) {
  return (
    <MessageView
      appId={app}
      id={id}
      facts={
        <Fact name="Application">
          <ApplicationLink id={app} />
        </Fact>
      }
    />
  )
}

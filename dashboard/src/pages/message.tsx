/** One message: its payload, where it came from, and what became of it. */
import { toApplication } from "../links.ts"
import { MessageView } from "../parts/message-view.tsx"
import type { PageProps } from "../routed.tsx"
import { Fact, Id } from "../ui/basics.tsx"

export function MessagePage({ params: { app = "", id = "" } }: PageProps) {
  return (
    <MessageView
      appId={app}
      id={id}
      facts={
        <Fact name="Application">
          <Id id={app} href={toApplication(app)} />
        </Fact>
      }
    />
  )
}

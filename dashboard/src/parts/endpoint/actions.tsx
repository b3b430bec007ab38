/** The buttons at the top of an endpoint's page. */
import { useState } from "preact/hooks"
import { api } from "../../api.ts"
import { toEndpoints } from "../../links.ts"
import { navigate } from "../../router.ts"
import { Button } from "../../ui/basics.tsx"
import { ask } from "../../ui/dialog.tsx"
import { notify } from "../../ui/notices.tsx"
import { act, type OfEndpoint, pathOf } from "./context.ts"
import { EnableEndpoint } from "./enable.tsx"
import { SendExample } from "./example.tsx"
import { EditEndpoint } from "./form.tsx"
import { SendAgain } from "./send-again.tsx"

type Open = "example" | "enable" | "edit" | "again"

interface ActionsProps {
  readonly of: OfEndpoint
  readonly onExample: (messageId: string) => void
}

export function Actions({ of, onExample }: ActionsProps) {
  const [open, setOpen] = useState<Open | null>(null)
  const { paused, disabled } = of.endpoint
  const close = () => setOpen(null)
  return (
    <>
      <Button needs="Change" onClick={() => setOpen("example")}>
        Send an example
      </Button>
      <Button needs="CreateAttempts" onClick={() => setOpen("again")}>
        Send again
      </Button>
      {disabled ? (
        <Button needs="ManageEndpoint" kind="primary" onClick={() => setOpen("enable")}>
          Enable
        </Button>
      ) : paused ? (
        <Button
          needs="ManageEndpoint"
          kind="primary"
          onClick={() => act(of, "/resume", "The endpoint is resumed, and its waiting deliveries are sent.")}
        >
          Resume
        </Button>
      ) : (
        <Button
          needs="ManageEndpoint"
          onClick={() => act(of, "/pause", "The endpoint is paused. Deliveries wait until it is resumed.")}
        >
          Pause
        </Button>
      )}
      <Button needs="ManageEndpoint" onClick={() => setOpen("edit")}>
        Edit
      </Button>
      <Button needs="ManageEndpoint" kind="danger" onClick={() => askToDelete(of)}>
        Delete
      </Button>
      {open === "example" && <SendExample of={of} onSent={onExample} onClose={close} />}
      {open === "again" && <SendAgain of={of} onClose={close} />}
      {open === "enable" && <EnableEndpoint of={of} onClose={close} />}
      {open === "edit" && <EditEndpoint appId={of.appId} endpoint={of.endpoint} onClose={close} />}
    </>
  )
}

function askToDelete(of: OfEndpoint): void {
  ask({
    title: "Delete the endpoint?",
    text: (
      <>
        <p>
          Nothing is sent to <code>{of.endpoint.url}</code> any more. Its waiting deliveries are cancelled,
          and finished ones are kept until their retention ends.
        </p>
        <p>It cannot be brought back. To stop it for a while, pause it.</p>
      </>
    ),
    action: "Delete",
    kind: "danger",
    run: async () => {
      await api.delete(pathOf(of))
      notify("good", "The endpoint is deleted.")
      navigate(toEndpoints())
    },
  })
}

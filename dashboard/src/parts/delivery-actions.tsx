/** The actions on one delivery: retry, cancel, reschedule. */
import { api, pathTo } from "../api.ts"
import type { Delivery } from "../types.ts"
import { ask, FormDialog } from "../ui/dialog.tsx"
import { TextField, textOf } from "../ui/forms.tsx"
import { notify } from "../ui/notices.tsx"
import { toLocal } from "./time-filter.tsx"

async function run(id: string, action: "retry" | "cancel", done: string, reload: () => void): Promise<void> {
  await api.post(pathTo("/delivery", id, action))
  notify("good", done)
  reload()
}

export function retryDelivery({ id, status }: Pick<Delivery, "id" | "status">, reload: () => void): unknown {
  const isLive = status === "pending" || status === "failed"
  const retry = () => run(id, "retry", "The delivery is due now. Its attempts begin at the first.", reload)
  if (isLive) return retry()
  ask({
    title: "Send it again?",
    text: <p>The receiver gets the message again, with the same id. Its attempts begin at the first.</p>,
    action: "Send again",
    run: retry,
  })
}

export function cancelDelivery(id: string, reload: () => void): void {
  ask({
    title: "Cancel this delivery?",
    text: <p>It is not sent. It becomes a dead letter, which can be sent again.</p>,
    action: "Cancel the delivery",
    kind: "danger",
    run: () => run(id, "cancel", "The delivery is cancelled.", reload),
  })
}

const IN_MS = 10 * 60_000

export function RescheduleDialog({
  id,
  reload,
  onClose,
}: {
  readonly id: string
  readonly reload: () => void
  readonly onClose: () => void
}) {
  const reschedule = async (values: FormData) => {
    const at = new Date(textOf(values, "at") ?? "")
    if (Number.isNaN(at.getTime())) throw new Error("Give a date and a time.")
    await api.post(pathTo("/delivery", id, "reschedule"), { at: at.toISOString() })
    notify("good", "The next attempt has another time.")
    reload()
  }
  return (
    <FormDialog
      title="Reschedule the next attempt"
      submit="Reschedule"
      onSubmit={reschedule}
      onClose={onClose}
    >
      <TextField
        name="at"
        type="datetime-local"
        label="Next attempt"
        value={toLocal(new Date(Date.now() + IN_MS).toISOString()).slice(0, 16)}
        hint="In your time zone. No attempt is counted."
        required
      />
    </FormDialog>
  )
}

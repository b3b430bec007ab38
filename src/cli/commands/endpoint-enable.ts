/** `posthorn endpoints enable`: brings a disabled endpoint back, and decides about its waiting deliveries and the messages that it missed. */

import type { EnableOut, EnablePreviewOut, EndpointOut } from "../../api/schemas/endpoint.ts"
import { countText } from "../../core/wording.ts"
import { type Api, ApiFailure, path } from "../api.ts"
import { action, WAIT_FLAG, YES_FLAG } from "../command.ts"
import { confirm } from "../confirm.ts"
import { on } from "../flag.ts"
import type { Output } from "../output.ts"
import { time } from "../table.ts"
import { ending, endOfStarted, type Task } from "../wait-for-task.ts"
import { APP, ENDPOINT } from "./shared.ts"

export const enable = action({
  summary: "bring a disabled endpoint back; its waiting deliveries are sent",
  about: `Messages sent while the endpoint was disabled have no delivery there, and are not sent; --replay sends them.
With --discard the endpoint stays disabled until all waiting deliveries are cancelled.`,
  args: [APP, ENDPOINT],
  flags: {
    discard: on("cancel the waiting deliveries, instead of sending them"),
    replay: on("also send the messages sent while the endpoint was disabled"),
    ...YES_FLAG,
    ...WAIT_FLAG,
  },
  examples: [
    "posthorn endpoints enable acme main --yes",
    "posthorn endpoints enable acme main --discard --replay --yes",
  ],
  async run({ api, out, args, flags }) {
    const endpoint = path`/app/${args.app}/endpoint/${args.endpoint}`
    const preview = await api.get<EnablePreviewOut>(`${endpoint}/enable`)
    if (!preview.disabled) throw new ApiFailure(409, `endpoint "${args.endpoint}" is not disabled`)
    await confirm(flags.yes, async () => previewText(preview, flags))
    const enabled = await api.post<EnableOut>(`${endpoint}/enable`, {
      held: flags.discard ? "discard" : "send",
      missed: flags.replay ? "replay" : "leave",
    })
    const ids = [enabled.discardTaskId, enabled.replayTaskId].filter((id) => id !== null)
    const tasks = flags["no-wait"] || ids.length === 0 ? null : await endsOf(api, out, ids)
    if (tasks === null) {
      const when = enabled.discardTaskId === null ? "" : " when its waiting deliveries are discarded"
      out.say(enabled, [`Endpoint ${args.endpoint} is enabled${when}.`, ...ids].join("\n"))
      return 0
    }
    // The response is from before the tasks.
    const document = { ...enabled, endpoint: await api.get<EndpointOut>(endpoint), tasks }
    out.say(document, tasks.map(ending).join("\n"))
    return tasks.every(({ status }) => status === "finished") ? 0 : 1
  },
})

/** A cancelled discard is the last: its replay is never started. Null: this key cannot read tasks. */
async function endsOf(api: Api, out: Output, ids: readonly string[]): Promise<readonly Task[] | null> {
  const tasks: Task[] = []
  for (const id of ids) {
    const task = await endOfStarted(api, out, id)
    if (task === null) return null
    tasks.push(task)
    if (task.status !== "finished") break
  }
  return tasks
}

function previewText(
  { held, heldIsLowerBound, missed, missedIsLowerBound, disabledAt, disabledReason }: EnablePreviewOut,
  flags: { readonly discard?: boolean; readonly replay?: boolean },
): string {
  const since = disabledAt === null ? "" : ` since ${time(disabledAt)}`
  const why = disabledReason === null ? "" : ` (${disabledReason})`
  const waiting = `${heldIsLowerBound ? "at least " : ""}${countText(held, "waiting delivery", "waiting deliveries")} would be ${flags.discard ? "cancelled" : "sent"}`
  const messages =
    missed === null
      ? "the messages"
      : `${missedIsLowerBound ? "at least " : ""}${countText(missed, "message")}`
  const sent = flags.replay ? "sent too" : "not sent"
  return `The endpoint is disabled${since}${why}. ${waiting}, and ${messages} sent while it was disabled would be ${sent}.`
}

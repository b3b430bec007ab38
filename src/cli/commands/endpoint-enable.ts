/** `posthorn endpoints enable`: brings a disabled endpoint back, and decides about what waits and what it missed. */
import type { EnableOut, EnablePreviewOut } from "../../api/schemas/endpoint.ts"
import { path } from "../api.ts"
import { action, WAIT_FLAG, YES_FLAG } from "../command.ts"
import { confirm } from "../confirm.ts"
import { on } from "../flag.ts"
import { UsageError } from "../usage-error.ts"
import { waitForTask } from "../wait-for-task.ts"
import { APP, count, ENDPOINT } from "./shared.ts"

export const enable = action({
  summary: "bring a disabled endpoint back; what waits is sent, what it missed is left",
  about: `Messages that came while the endpoint was disabled have no delivery there; --replay makes them.
With --discard the endpoint stays disabled until all that waits is cancelled.`,
  args: [APP, ENDPOINT],
  flags: {
    discard: on("cancel what waits, instead of sending it"),
    replay: on("also send what came while the endpoint was disabled"),
    ...YES_FLAG,
    ...WAIT_FLAG,
  },
  examples: [
    "posthorn endpoints enable acme main --yes",
    "posthorn endpoints enable acme main --discard --replay --yes",
  ],
  async run({ api, out, args, flags }) {
    const route = path`/app/${args.app}/endpoint/${args.endpoint}/enable`
    await confirm(flags.yes, async () => {
      const preview = await api.get<EnablePreviewOut>(route)
      if (!preview.disabled) throw new UsageError(`endpoint ${args.endpoint} is not disabled`)
      return text(preview, flags)
    })
    const choice = {
      held: flags.discard ? "discard" : "send",
      missed: flags.replay ? "replay" : "leave",
    }
    const enabled = await api.post<EnableOut>(route, choice)
    const tasks = [enabled.discardTaskId, enabled.replayTaskId].filter((id) => id !== null)
    if (tasks.length === 0 || flags["no-wait"]) {
      const done =
        enabled.discardTaskId === null
          ? `Endpoint ${args.endpoint} is enabled.`
          : `Endpoint ${args.endpoint} is enabled when what waits is discarded.`
      out.say(enabled, [done, ...tasks].join("\n"))
      return 0
    }
    for (const task of tasks) {
      const code = await waitForTask(api, out, task)
      if (code !== 0) return code
    }
    return 0
  },
})

function text(
  { held, missed, missedIsLowerBound, disabledAt, disabledReason }: EnablePreviewOut,
  flags: { readonly discard?: boolean; readonly replay?: boolean },
): string {
  const since = disabledAt === null ? "" : ` since ${new Date(disabledAt).toISOString()}`
  const why = disabledReason === null ? "" : ` (${disabledReason})`
  const waiting = `${count(held, "waiting delivery", "waiting deliveries")} would be ${flags.discard ? "cancelled" : "sent"}`
  const messages =
    missed === null
      ? "the messages that came meanwhile"
      : `${missedIsLowerBound ? "at least " : ""}${count(missed, "message")} that came meanwhile`
  return `The endpoint is disabled${since}${why}. ${waiting}, and ${messages} ${flags.replay ? "sent too" : "left out"}.`
}

/** `posthorn deliveries send-now`: makes waiting deliveries due at once. */

import { countText } from "../../core/wording.ts"
import { action, WAIT_FLAG, YES_FLAG } from "../command.ts"
import { confirm } from "../confirm.ts"
import { choice, on } from "../flag.ts"
import { UsageError } from "../usage-error.ts"
import { followTask, type StartedTask, type Task } from "../wait-for-task.ts"
import { DELIVERY_FILTERS } from "./filters.ts"
import { filterText } from "./shared.ts"

const { reason: _reason, ...which } = DELIVERY_FILTERS
const WAITING = {
  ...which,
  status: choice(["pending", "failed"], "only first attempts, or only those that were tried before", {
    field: "status",
  }),
} as const

const NOTHING_WAITS =
  "Nothing waits that could be sent now. Paused and disabled endpoints keep their deliveries."

export const sendNow = action({
  summary: "the receiver is back: send the waiting deliveries now",
  about: `All waiting deliveries that match every flag that is given. It also closes the circuit breakers of their endpoints, fills the
retry budgets, and ends the ramp after an outage and a Retry-After. No attempt is counted, and ordered endpoints keep their order.
First attempts that were set for a later time keep it. Paused and disabled endpoints keep their deliveries.`,
  flags: { ...WAITING, all: on("every waiting delivery"), ...YES_FLAG, ...WAIT_FLAG },
  examples: [
    "posthorn deliveries send-now --app acme --endpoint main --yes",
    "posthorn deliveries send-now --app acme --type invoice.paid --answer 500 --yes",
    "posthorn deliveries send-now --all --yes",
  ],
  async run({ api, out, flags, fields }) {
    if (Object.keys(fields).length > 0 === (flags.all ?? false))
      throw new UsageError(
        "say which: flags such as --app and --endpoint, or --all alone for every waiting delivery",
      )
    const found = await api.get<{ readonly count: number }>("/delivery/count-waiting", fields)
    if (found.count === 0) {
      out.say(found, NOTHING_WAITS)
      return 0
    }
    await confirm(flags.yes, async () => {
      const many = countText(found.count, "waiting delivery", "waiting deliveries")
      return `${many}${filterText(flags, Object.keys(WAITING))} would be sent now.`
    })
    return followTask(api, out, await api.post<StartedTask>("/delivery/send-now", fields), flags, ending)
  },
})

/** A held delivery that was already due counts as done but not as changed. */
function ending({ id, task, status, data: { done = 0, changed = 0 } }: Task): string {
  const ahead = `${countText(done, "delivery is", "deliveries are")} due now, ${changed} of them ahead of their time`
  return `${task} is ${status}: ${ahead} (${id})`
}

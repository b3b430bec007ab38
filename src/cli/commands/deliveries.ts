/** `posthorn deliveries`: deliveries and their attempts. */
import type { DeliveryOut } from "../../api/schemas/delivery.ts"
import type { AttemptOut } from "../../api/schemas/message.ts"
import { path } from "../api.ts"
import { type Action, action, type Group, PAGE_FLAGS, TABLE_FLAGS } from "../command.ts"
import { choice } from "../flag.ts"
import { showList } from "../lists.ts"
import type { Output } from "../output.ts"
import { type Column, shortId, shortTime, time } from "../table.ts"
import { moment, span } from "../time-flags.ts"
import { UsageError } from "../usage-error.ts"
import { ATTEMPT_COLUMNS } from "./attempts.ts"
import { DELIVERY_FILTERS } from "./filters.ts"
import { sendNow } from "./send-now.ts"

export const DELIVERY = { name: "delivery", about: "the delivery's id" } as const

export const DELIVERY_COLUMNS: readonly Column<DeliveryOut>[] = [
  { title: "ID", value: ({ id }) => id, short: shortId },
  { title: "STATUS", value: ({ status }) => status },
  { title: "REASON", value: ({ deadReason }) => deadReason, minor: true },
  { title: "TYPE", value: ({ eventType }) => eventType, cut: true, minor: true },
  { title: "TRIES", value: ({ attemptCount }) => attemptCount, right: true },
  { title: "NEXT", value: ({ nextAttempt }) => time(nextAttempt), short: shortTime },
  { title: "WHY", value: ({ waitReason }) => waitReason, minor: true },
  { title: "URL", value: ({ url }) => url, cut: true, least: 24 },
  { title: "ERROR", value: ({ error }) => error, cut: true, least: 24 },
]

export function showDelivery(out: Output, document: DeliveryOut): void {
  const { attempts: _below, ...delivery } = document as DeliveryOut & { readonly attempts?: unknown }
  const times = ["nextAttempt", "lastAttemptedAt", "receivedAt", "deliveredAt", "discardedAt"] as const
  out.record(document, {
    ...delivery,
    ...Object.fromEntries(times.map((name) => [name, time(delivery[name])])),
  })
}

function change(verb: "retry" | "cancel", summary: string): Action {
  return action({
    summary,
    args: [DELIVERY],
    examples: [`posthorn deliveries ${verb} DELIVERY_ID`],
    async run({ api, out, args }) {
      showDelivery(out, await api.post(path`/delivery/${args.delivery}/${verb}`))
    },
  })
}

export const command: Group = {
  summary: "deliveries: one message for one endpoint, and how it goes",
  actions: {
    list: action({
      summary: "list deliveries, the newest first",
      flags: {
        ...DELIVERY_FILTERS,
        status: choice(["pending", "failed", "delivered", "dead"], "in this state", { field: "status" }),
        ...PAGE_FLAGS,
      },
      examples: [
        "posthorn deliveries list",
        "posthorn deliveries list --app acme --status failed --since 1d",
      ],
      run: (run) =>
        showList(run, {
          route: "/delivery",
          query: run.fields,
          columns: DELIVERY_COLUMNS,
          none: "There are no such deliveries.",
        }),
    }),
    get: action({
      summary: "show a delivery with its attempts, and when the next is due",
      args: [DELIVERY],
      flags: TABLE_FLAGS,
      examples: ["posthorn deliveries get DELIVERY_ID"],
      async run({ api, out, args }) {
        const delivery = await api.get<DeliveryOut & { readonly attempts: readonly AttemptOut[] }>(
          path`/delivery/${args.delivery}`,
        )
        showDelivery(out, delivery)
        if (out.json) return
        out.note("")
        out.table(delivery, delivery.attempts, ATTEMPT_COLUMNS, "No attempt was made yet.")
      },
    }),
    reschedule: action({
      summary: "set when a waiting delivery is tried next; no attempt is counted",
      args: [DELIVERY],
      flags: {
        in: span("after this time from now: 90s, 15m, 2h, 7d", { field: "delaySeconds" }),
        at: moment("at this time", "after", { field: "at" }),
      },
      examples: [
        "posthorn deliveries reschedule DELIVERY_ID --in 15m",
        "posthorn deliveries reschedule DELIVERY_ID --at 2027-03-01T12:00:00Z",
      ],
      async run({ api, out, args, flags, fields }) {
        if ((flags.in === undefined) === (flags.at === undefined))
          throw new UsageError("say when, once: --in SPAN or --at TIME")
        showDelivery(out, await api.post(path`/delivery/${args.delivery}/reschedule`, fields))
      },
    }),
    "send-now": sendNow,
    retry: change("retry", "send it again from its first attempt, or at once if it waits"),
    cancel: change("cancel", "cancel a waiting delivery"),
  },
}

/** `posthorn dead`: dead letters. */

import type { Static } from "../../api/schema.ts"
import type { DeadGroupOut, DeliveryOut } from "../../api/schemas/delivery.ts"
import { countText } from "../../core/wording.ts"
import { path } from "../api.ts"
import { type Action, action, type Group, PAGE_FLAGS, TABLE_FLAGS, WAIT_FLAG, YES_FLAG } from "../command.ts"
import { confirm } from "../confirm.ts"
import { choice, on, wholeNumber } from "../flag.ts"
import { showList } from "../lists.ts"
import { type Column, shortId, shortTime, time } from "../table.ts"
import { UsageError } from "../usage-error.ts"
import { followTask, type StartedTask } from "../wait-for-task.ts"
import { DELIVERY_COLUMNS, showDelivery } from "./deliveries.ts"
import { DELIVERY_FILTERS } from "./filters.ts"
import { endpointName, filterText } from "./shared.ts"

const GROUPS: readonly Column<Static<typeof DeadGroupOut>>[] = [
  { title: "COUNT", value: (group) => group.count, right: true },
  { title: "ENDPOINT", value: endpointName, short: shortId, cut: true, least: 20 },
  { title: "REASON", value: ({ deadReason }) => deadReason },
  { title: "OLDEST", value: ({ oldestAt }) => time(oldestAt), short: shortTime, minor: true },
  { title: "NEWEST", value: ({ newestAt }) => time(newestAt), short: shortTime },
  { title: "ERROR", value: ({ error }) => error, cut: true, least: 24 },
]

const NONE = "There are no such dead letters."

function change(verb: "retry" | "discard", summary: string, happens: string): Action {
  return action({
    summary,
    about: "One by its id, or all that fit every flag that is given.",
    args: [{ name: "delivery", about: "the id of one dead letter", optional: true }],
    flags: { ...DELIVERY_FILTERS, all: on("every dead letter there is"), ...YES_FLAG, ...WAIT_FLAG },
    examples: [
      `posthorn dead ${verb} DELIVERY_ID --yes`,
      `posthorn dead ${verb} --app acme --reason exhausted --since 7d --yes`,
    ],
    async run({ api, out, args, flags, fields }) {
      const isFiltered = Object.keys(fields).length > 0
      if (args.delivery !== undefined) {
        if (isFiltered || flags.all) throw new UsageError("give one id, or flags that say which, not both")
        const { delivery } = args
        if (verb === "discard")
          await confirm(flags.yes, async () => `Dead letter ${delivery} would be ${happens}.`)
        showDelivery(out, await api.post(path`/dead-letter/${delivery}/${verb}`))
        return 0
      }
      if (isFiltered === (flags.all ?? false))
        throw new UsageError(
          `say which: an id, flags such as --app and --reason, or --all alone for every dead letter`,
        )
      if (!flags.yes) {
        const found = await api.get<{ readonly count: number }>("/dead-letter/count", fields)
        if (found.count === 0) {
          out.say(found, NONE)
          return 0
        }
        const which = filterText(flags, Object.keys(DELIVERY_FILTERS))
        await confirm(
          false,
          async () => `${countText(found.count, "dead letter")}${which} would be ${happens}.`,
        )
      }
      return followTask(api, out, await api.post<StartedTask>(`/dead-letter/${verb}`, fields), flags)
    },
  })
}

export const command: Group = {
  summary: "dead letters: what was given up; look, count, send again, discard",
  actions: {
    list: action({
      summary: "list what was given up and not discarded, the newest first",
      flags: { ...DELIVERY_FILTERS, ...PAGE_FLAGS },
      examples: ["posthorn dead list", "posthorn dead list --app acme --reason exhausted --since 7d"],
      run: (run) =>
        showList<DeliveryOut>(run, {
          route: "/dead-letter",
          query: run.fields,
          columns: DELIVERY_COLUMNS.filter(({ title }) => title !== "STATUS" && title !== "NEXT"),
          none: NONE,
        }),
    }),
    groups: action({
      summary: "dead letters by endpoint, reason and error, the largest group first",
      flags: {
        ...DELIVERY_FILTERS,
        ...TABLE_FLAGS,
        limit: wholeNumber("N", "the most groups (100)", { field: "limit" }),
        by: choice(["error", "cause"], "cause: errors with the same start, up to a colon, together", {
          field: "by",
        }),
      },
      examples: ["posthorn dead groups", "posthorn dead groups --app acme --limit 5"],
      async run({ api, out, fields }) {
        const groups = await api.get<{ readonly data: readonly Static<typeof DeadGroupOut>[] }>(
          "/dead-letter/group",
          fields,
        )
        out.table(groups, groups.data, GROUPS, NONE)
      },
    }),
    count: action({
      summary: "how many a retry or discard with the same flags would take",
      flags: DELIVERY_FILTERS,
      examples: ["posthorn dead count", "posthorn dead count --app acme --since 7d"],
      async run({ api, out, fields }) {
        const found = await api.get<{ readonly count: number }>("/dead-letter/count", fields)
        out.say(found, String(found.count))
      },
    }),
    retry: change("retry", "send what was given up again, from its first attempt", "sent again"),
    discard: change("discard", "take dead letters off the list; their records stay", "taken off the list"),
  },
}

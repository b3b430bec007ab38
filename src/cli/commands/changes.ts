/** `posthorn changes`: the record of changes and their callers. */
import { action, type Command, PAGE_FLAGS } from "../command.ts"
import { text } from "../flag.ts"
import { showList } from "../lists.ts"
import { type Column, shortId, shortTime, time } from "../table.ts"

interface Change {
  readonly at: string
  readonly action: string
  readonly by: { readonly kind: string; readonly name: string }
  readonly appId: string | null
  readonly subject: string | null
  readonly detail: string | null
}

const COLUMNS: readonly Column<Change>[] = [
  { title: "AT", value: ({ at }) => time(at), short: shortTime },
  { title: "ACTION", value: ({ action }) => action },
  { title: "BY", value: ({ by }) => `${by.name} (${by.kind})`, cut: true },
  { title: "APP", value: ({ appId }) => appId, short: shortId },
  { title: "SUBJECT", value: ({ subject }) => subject, short: shortId },
  { title: "DETAIL", value: ({ detail }) => detail, cut: true },
]

export const command: Command = action({
  summary: "list who changed what through the API in the last 90 days, the newest first",
  flags: {
    app: text("APP", "of this application, by id or uid", { field: "app_id" }),
    endpoint: text("ENDPOINT", "of this endpoint, by id; with --app also by uid", { field: "endpoint_id" }),
    ...PAGE_FLAGS,
  },
  examples: ["posthorn changes", "posthorn changes --app acme --endpoint main"],
  run: (run) =>
    showList(run, {
      route: "/change",
      query: run.fields,
      columns: COLUMNS,
      none: "Nothing was changed in the last 90 days.",
    }),
})

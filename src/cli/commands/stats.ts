/** `posthorn stats`: counts of deliveries by status. */
import { action, type Command } from "../command.ts"
import { text } from "../flag.ts"
import { moment } from "../time-flags.ts"
import { UsageError } from "../usage-error.ts"

export const command: Command = action({
  summary: "how many deliveries are in each state: in all, of an application, or of an endpoint",
  flags: {
    app: text("APP", "of this application, by id or uid", { field: "app_id" }),
    endpoint: text("ENDPOINT", "of this endpoint of it, by id or uid", { field: "endpoint_id" }),
    since: moment("of messages received at or after", "before", { field: "since" }),
    until: moment("of messages received before", "before", { field: "until" }),
  },
  examples: [
    "posthorn stats",
    "posthorn stats --app acme",
    "posthorn stats --app acme --endpoint main --since 1d",
  ],
  async run({ api, out, flags, fields }) {
    if (flags.endpoint !== undefined && flags.app === undefined)
      throw new UsageError("--app is missing: the application of the endpoint")
    out.record(await api.get("/stats/delivery", fields))
  },
})

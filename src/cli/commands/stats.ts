/** `posthorn stats`: how many deliveries are in each state. */
import { path } from "../api.ts"
import { action, type Table } from "../command.ts"
import { text } from "../flag.ts"
import { UsageError } from "../options.ts"
import { moment } from "../when.ts"

export const table: Table = action({
  summary:
    "how many deliveries are in each state: of all, of an application, or of an endpoint in up to 28 days",
  flags: {
    app: text("APP", "of this application, by id or uid"),
    endpoint: text("ENDPOINT", "of this endpoint of it, by id or uid"),
    since: moment("of an endpoint, received at or after (28d ago)", "before", { field: "since" }),
    until: moment("of an endpoint, received before (now)", "before", { field: "until" }),
  },
  examples: [
    "posthorn stats",
    "posthorn stats --app acme",
    "posthorn stats --app acme --endpoint main --since 1d",
  ],
  async run({ api, out, flags, fields }) {
    const { app, endpoint } = flags
    if (endpoint === undefined) {
      if (Object.keys(fields).length > 0) throw new UsageError("--since and --until are for one --endpoint")
      out.record(await api.get("/stats/delivery", { app_id: app }))
    } else {
      if (app === undefined) throw new UsageError("--app is missing: the application of the endpoint")
      out.record(await api.get(path`/app/${app}/endpoint/${endpoint}/stats`, fields))
    }
  },
})

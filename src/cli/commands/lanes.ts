/** `posthorn lanes`: endpoints with waiting deliveries. */
import type { Static } from "../../api/schema.ts"
import type { LaneOut } from "../../api/schemas/delivery.ts"
import { action, type Command, PAGE_FLAGS } from "../command.ts"
import { showList } from "../lists.ts"
import { type Column, shortId, shortTime, time } from "../table.ts"
import { DELIVERY_FILTERS } from "./filters.ts"
import { endpointName } from "./shared.ts"

const COLUMNS: readonly Column<Static<typeof LaneOut>>[] = [
  { title: "APP", value: ({ appId }) => appId, short: shortId },
  { title: "ENDPOINT", value: endpointName, short: shortId, cut: true, least: 20 },
  { title: "WHY", value: ({ reason }) => reason },
  { title: "WAITING", value: ({ waiting }) => waiting, right: true },
  { title: "RETRYING", value: ({ retrying }) => retrying, right: true, minor: true },
  { title: "SENDING", value: ({ sending }) => sending, right: true },
  { title: "SINCE", value: ({ oldestAt }) => time(oldestAt), short: shortTime, minor: true },
  { title: "NEXT", value: ({ nextDueAt }) => time(nextDueAt), short: shortTime },
]

export const command: Command = action({
  summary: "the endpoints for which something waits: how much, why, and since when",
  flags: { app: DELIVERY_FILTERS.app, ...PAGE_FLAGS },
  examples: ["posthorn lanes", "posthorn lanes --app acme"],
  run: (run) =>
    showList(run, { route: "/lane", query: run.fields, columns: COLUMNS, none: "Nothing waits." }),
})

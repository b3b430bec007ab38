/** `posthorn lanes`: what waits, why, and since when. */
import type { Static } from "../../api/schema.ts"
import type { LaneOut } from "../../api/schemas/delivery.ts"
import { action, PAGES, type Table } from "../command.ts"
import { showList } from "../lists.ts"
import { type Column, time } from "../table.ts"
import { WHICH } from "./filters.ts"

const COLUMNS: readonly Column<Static<typeof LaneOut>>[] = [
  { title: "ENDPOINT", value: ({ endpointId }) => endpointId },
  { title: "WHY", value: ({ reason }) => reason },
  { title: "WAITING", value: ({ waiting }) => waiting, right: true },
  { title: "RETRYING", value: ({ retrying }) => retrying, right: true },
  { title: "SENDING", value: ({ sending }) => sending, right: true },
  { title: "SINCE", value: ({ oldestAt }) => time(oldestAt) },
  { title: "NEXT", value: ({ nextDueAt, heldUntil }) => time(heldUntil ?? nextDueAt) },
]

export const table: Table = action({
  summary: "the endpoints for which something waits: how much, why, and since when",
  flags: { app: WHICH.app, ...PAGES },
  examples: ["posthorn lanes", "posthorn lanes --app acme"],
  run: (run) =>
    showList(run, { route: "/lane", query: run.fields, columns: COLUMNS, none: "Nothing waits." }),
})

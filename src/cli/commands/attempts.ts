/** `posthorn attempts`: requests and their responses. */
import type { AttemptOut } from "../../api/schemas/message.ts"
import { path } from "../api.ts"
import { action, type Group, PAGE_FLAGS } from "../command.ts"
import { choice, text } from "../flag.ts"
import { showList } from "../lists.ts"
import { type Column, shortId, shortTime, time } from "../table.ts"
import { DELIVERY_FILTERS, MESSAGE_FILTERS } from "./filters.ts"
import { APP } from "./shared.ts"

export const ATTEMPT_COLUMNS: readonly Column<AttemptOut>[] = [
  { title: "ATTEMPT", value: ({ id }) => id, short: shortId },
  { title: "AT", value: ({ timestamp }) => time(timestamp), short: shortTime },
  { title: "STATUS", value: ({ statusText }) => statusText },
  { title: "HTTP", value: ({ responseStatusCode }) => responseStatusCode || null, right: true },
  { title: "MS", value: ({ responseDurationMs }) => responseDurationMs, right: true },
  { title: "URL", value: ({ url }) => url, cut: true, least: 24 },
  { title: "ANSWER", value: ({ error, response }) => error ?? response, cut: true, least: 24 },
]

function routeOf(app: string, endpoint: string | undefined, message: string | undefined): string {
  if (message !== undefined) return path`/app/${app}/attempt/msg/${message}`
  if (endpoint !== undefined) return path`/app/${app}/attempt/endpoint/${endpoint}`
  return path`/app/${app}/attempt`
}

const STATUSES = { success: 0, fail: 2 } as const

export const command: Group = {
  summary: "attempts: single requests, and what came back",
  actions: {
    list: action({
      summary: "list attempts, the newest first: of an application, for an endpoint, or of a message",
      args: [APP],
      flags: {
        endpoint: text("ENDPOINT", "for this endpoint, by id or uid"),
        message: text("MESSAGE", "of this message, by id or event id"),
        status: choice(["success", "fail"], "with this outcome"),
        answer: DELIVERY_FILTERS.answer,
        ...MESSAGE_FILTERS,
        ...PAGE_FLAGS,
      },
      examples: [
        "posthorn attempts list acme --status fail",
        "posthorn attempts list acme --endpoint main",
        "posthorn attempts list acme --message invoice-17",
        "posthorn attempts list acme --endpoint main --status fail --since 1d",
      ],
      run(run) {
        const { app } = run.args
        const { endpoint, message, status } = run.flags
        return showList(run, {
          route: routeOf(app, endpoint, message),
          query: {
            ...run.fields,
            ...(message === undefined ? {} : { endpoint_id: endpoint }),
            status: status === undefined ? undefined : STATUSES[status],
          },
          columns: ATTEMPT_COLUMNS,
          none: "There are no such attempts.",
        })
      },
    }),
  },
}

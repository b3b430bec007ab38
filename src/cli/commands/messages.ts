/** `posthorn messages`: accepted messages. */
import type { MessageEndpointOut } from "../../api/schemas/endpoint.ts"
import type { InboundRequestOut, MessageOut } from "../../api/schemas/message.ts"
import { path } from "../api.ts"
import { action, type Group, PAGE_FLAGS, TABLE_FLAGS } from "../command.ts"
import { readList, showList } from "../lists.ts"
import { type Column, shortId, shortTime, time } from "../table.ts"
import { MESSAGE_FILTERS } from "./filters.ts"
import { APP, ENDPOINT } from "./shared.ts"

const COLUMNS: readonly Column<MessageOut>[] = [
  { title: "ID", value: ({ id }) => id, short: shortId },
  { title: "TYPE", value: ({ eventType }) => eventType, cut: true },
  { title: "EVENT ID", value: ({ eventId }) => eventId, cut: true },
  { title: "ENDPOINTS", value: ({ matched }) => matched, right: true },
  { title: "RECEIVED", value: ({ timestamp }) => time(timestamp), short: shortTime },
]

const DESTINATIONS: readonly Column<MessageEndpointOut>[] = [
  { title: "DELIVERY", value: ({ deliveryId }) => deliveryId, short: shortId },
  { title: "STATUS", value: ({ deliveryStatus }) => deliveryStatus },
  { title: "NEXT ATTEMPT", value: ({ nextAttempt }) => time(nextAttempt), short: shortTime },
  { title: "WHY", value: ({ waitReason }) => waitReason },
  { title: "URL", value: ({ url }) => url, cut: true },
]

type Header = readonly [name: string, value: string]

const HEADERS: readonly Column<Header>[] = [
  { title: "HEADER", value: ([name]) => name },
  { title: "VALUE", value: ([, value]) => value, cut: true },
]

const headersOf = ({ headers, sensitive }: InboundRequestOut): Header[] => [
  ...(headers as unknown as Header[]),
  ...sensitive.map((name) => [name, "not shown"] as const),
]

function requestFields(inbound: InboundRequestOut | undefined) {
  if (inbound === undefined) return {}
  const { sourceId, method, path, query } = inbound
  return { source: sourceId, request: `${method} ${path || "/"}${query}` }
}

const MESSAGE = { name: "message", about: "the message, by id or event id" } as const

export const command: Group = {
  summary: "messages: what was sent, and to whom",
  actions: {
    list: action({
      summary: "list an application's messages, the newest first",
      args: [APP],
      flags: { ...MESSAGE_FILTERS, ...PAGE_FLAGS },
      examples: ["posthorn messages list acme", "posthorn messages list acme --type invoice.paid --since 2h"],
      run: (run) =>
        showList(run, {
          route: path`/app/${run.args.app}/msg`,
          query: { ...run.fields, with_content: run.out.json },
          columns: COLUMNS,
          none: "There are no such messages.",
        }),
    }),
    get: action({
      summary: "show a message, and what became of it at each endpoint",
      args: [APP, MESSAGE],
      flags: TABLE_FLAGS,
      examples: ["posthorn messages get acme invoice-17", "posthorn messages get acme MESSAGE_ID --json"],
      async run({ api, out, args }) {
        const route = path`/app/${args.app}/msg/${args.message}`
        const message = await api.get<MessageOut>(route)
        const { inbound, timestamp, ...rest } = message
        out.record(message, { ...rest, timestamp: time(timestamp), ...requestFields(inbound) })
        if (out.json) return
        if (inbound !== undefined) {
          out.note("")
          out.table(inbound, headersOf(inbound), HEADERS, "The request had no headers.")
        }
        const list = await readList<MessageEndpointOut>(api, `${route}/endpoint`, {}, { all: true })
        out.note("")
        out.table(list, list.data, DESTINATIONS, "No endpoint got it.")
      },
    }),
    resend: action({
      summary: "send a message to an endpoint again, or for the first time",
      args: [APP, MESSAGE, ENDPOINT],
      examples: ["posthorn messages resend acme invoice-17 main"],
      async run({ api, out, args }) {
        const { app, message, endpoint } = args
        const sent = await api.post(path`/app/${app}/msg/${message}/endpoint/${endpoint}/resend`)
        const where = `posthorn messages get ${app} ${message} shows how it goes.`
        out.say(sent, `Message ${message} is sent to ${endpoint} again: ${where}`)
      },
    }),
  },
}

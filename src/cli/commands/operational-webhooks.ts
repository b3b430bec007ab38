/** `posthorn operational-webhooks`: endpoints for notifications about endpoints and messages. */
import type { OperationalWebhookEndpointOut } from "../../api/schemas/operational-webhook.ts"
import { path } from "../api.ts"
import { action, type Group, PAGE_FLAGS, uid, YES_FLAG } from "../command.ts"
import { confirm } from "../confirm.ts"
import { clearableTexts, off, on, text } from "../flag.ts"
import { showList } from "../lists.ts"
import type { Output } from "../output.ts"
import { type Column, shortId, time } from "../table.ts"
import { ENDPOINT_FIELDS, HEADER } from "./endpoint-fields.ts"
import { ROTATE_FLAGS, rotateSecret, showSecret } from "./endpoint-secret.ts"
import { ENDPOINT, requireChanges } from "./shared.ts"

const LIST = "/operational-webhook/endpoint"
const routeOf = ({ endpoint }: { readonly endpoint: string }) => `${LIST}${path`/${endpoint}`}`

const COLUMNS: readonly Column<OperationalWebhookEndpointOut>[] = [
  { title: "ID", value: ({ id }) => id, short: shortId },
  { title: "UID", value: (endpoint) => endpoint.uid, cut: true },
  { title: "URL", value: ({ url }) => url, cut: true, least: 24 },
  { title: "TYPES", value: ({ eventTypes }) => eventTypes ?? "all", cut: true },
  { title: "STATE", value: ({ disabled }) => (disabled ? "disabled" : "on") },
]

const FIELDS = {
  uid,
  description: ENDPOINT_FIELDS.description,
  type: clearableTexts("TYPE", "only this event, such as endpoint.disabled; several are any of them", {
    field: "eventTypes",
  }),
  "rate-limit": ENDPOINT_FIELDS["rate-limit"],
  metadata: ENDPOINT_FIELDS.metadata,
} as const

function show(out: Output, endpoint: OperationalWebhookEndpointOut): void {
  const { rateLimit: _rate, filterTypes: _types, createdAt, updatedAt, ...rest } = endpoint
  out.record(endpoint, { ...rest, createdAt: time(createdAt), updatedAt: time(updatedAt) })
}

export const command: Group = {
  summary: "operational webhooks: be told of endpoints that change and messages that fail",
  actions: {
    list: action({
      summary: "list the endpoints that are told, the newest first",
      flags: PAGE_FLAGS,
      examples: ["posthorn operational-webhooks list"],
      run: (run) =>
        showList(run, { route: LIST, columns: COLUMNS, none: "There are no operational endpoints." }),
    }),
    get: action({
      summary: "show an operational endpoint",
      args: [ENDPOINT],
      examples: ["posthorn operational-webhooks get ops"],
      async run({ api, out, args }) {
        show(out, await api.get(routeOf(args)))
      },
    }),
    create: action({
      summary: "create an operational endpoint",
      args: [{ name: "url", about: "where requests go, http or https" }],
      flags: {
        ...FIELDS,
        header: HEADER,
        secret: text("SECRET", "whsec_… or whsk_…, instead of one that is made", { field: "secret" }),
      },
      examples: [
        "posthorn operational-webhooks create https://example.com/ops --uid ops-2 --type endpoint.disabled",
      ],
      absentStore: () => "create",
      async run({ api, out, args, flags, fields }) {
        const headers = flags.header === undefined ? {} : { headers: flags.header }
        show(out, await api.post(LIST, { url: args.url, ...fields, ...headers }))
      },
    }),
    update: action({
      summary: "change an operational endpoint; what is not given stays",
      args: [ENDPOINT],
      flags: {
        url: text("URL", "where requests go from the next attempt on", { field: "url" }),
        ...FIELDS,
        disable: on("is told nothing", { field: "disabled" }),
        enable: off("is told again", { field: "disabled" }),
      },
      examples: ["posthorn operational-webhooks update ops --type= --rate-limit 5"],
      async run({ api, out, args, fields }) {
        requireChanges(fields)
        const { id, createdAt, updatedAt, rateLimit, filterTypes, ...before } =
          await api.get<OperationalWebhookEndpointOut>(routeOf(args))
        show(out, await api.send("PUT", routeOf(args), { body: { ...before, ...fields } }))
      },
    }),
    delete: action({
      summary: "delete an operational endpoint",
      args: [ENDPOINT],
      flags: YES_FLAG,
      examples: ["posthorn operational-webhooks delete ops --yes"],
      async run({ api, out, args, flags }) {
        await confirm(flags.yes, async () => {
          const { id, url } = await api.get<OperationalWebhookEndpointOut>(routeOf(args))
          return `Operational endpoint ${id} (${url}) would be deleted.`
        })
        out.say(await api.send("DELETE", routeOf(args)), `Operational endpoint ${args.endpoint} is deleted.`)
      },
    }),
    secret: action({
      summary: "show what the receiver verifies with: whsec_…, or whpk_… of an ed25519 key",
      args: [ENDPOINT],
      examples: ["posthorn operational-webhooks secret ops"],
      run: ({ api, out, args }) => showSecret(api, out, routeOf(args)),
    }),
    rotate: action({
      summary: "make a new secret; the old one signs beside it for a day, and the new one is shown",
      args: [ENDPOINT],
      flags: ROTATE_FLAGS,
      examples: ["posthorn operational-webhooks rotate ops --grace 2h"],
      run: ({ api, out, args, fields }) => rotateSecret(api, out, routeOf(args), fields),
    }),
  },
}

/** `posthorn sources`: the URLs that take webhooks in from providers. */
import type { SourceActivityOut, SourceOut } from "../../api/schemas/source.ts"
import { path } from "../api.ts"
import { action, type Group, PAGE_FLAGS, YES_FLAG } from "../command.ts"
import { confirm } from "../confirm.ts"
import { off, on, text } from "../flag.ts"
import { showList } from "../lists.ts"
import { fieldsFrom } from "../source.ts"
import { span } from "../time-flags.ts"
import { UsageError } from "../usage-error.ts"
import { APP, requireChanges } from "./shared.ts"
import {
  SOURCE_COLUMNS,
  SOURCE_FIELDS,
  secretOf,
  showActivity,
  showSource,
  sourceFields,
} from "./source-fields.ts"

const SOURCE = { name: "source", about: "the source, by id or name" } as const

const routeOf = ({ app, source }: { readonly app: string; readonly source: string }) =>
  path`/app/${app}/source/${source}`

export const command: Group = {
  summary: "sources: URLs that take webhooks in from providers",
  actions: {
    list: action({
      summary: "list an application's sources",
      args: [APP],
      flags: PAGE_FLAGS,
      examples: ["posthorn sources list acme"],
      run: (run) =>
        showList(run, {
          route: path`/app/${run.args.app}/source`,
          columns: SOURCE_COLUMNS,
          none: "The application has no sources.",
        }),
    }),
    get: action({
      summary: "show a source and its URL, without its secrets",
      args: [APP, SOURCE],
      examples: ["posthorn sources get acme github"],
      async run({ api, out, args }) {
        showSource(out, await api.get(routeOf(args)))
      },
    }),
    create: action({
      summary: "create a source; its URL is what the provider is given",
      args: [APP, { name: "name", about: "what it is called; unique in the application" }],
      flags: {
        ...SOURCE_FIELDS,
        disabled: off("its URL does not work until it is enabled", { field: "enabled" }),
      },
      examples: [
        "posthorn sources create acme second --scheme github --secret-file secret.txt --type header:X-GitHub-Event",
        "posthorn sources create acme mail --from hmac.json",
        "posthorn sources create acme graph --scheme none --handshake microsoft-graph",
      ],
      async run({ api, out, args, flags, fields }) {
        const body = {
          ...(await fieldsFrom(flags.from)),
          ...fields,
          ...(await sourceFields(flags)),
          name: args.name,
        } as { readonly verification?: unknown }
        if (body.verification === undefined)
          throw new UsageError("--scheme is missing: how requests are verified; none accepts every request")
        showSource(out, await api.post(path`/app/${args.app}/source`, body))
      },
    }),
    update: action({
      summary: "change a source; what is not given stays, and so does its URL",
      args: [APP, SOURCE],
      flags: {
        name: text("NAME", "what it is called", { field: "name" }),
        ...SOURCE_FIELDS,
        disable: off("its URL is answered as if it did not exist", { field: "enabled" }),
        enable: on("its URL works again", { field: "enabled" }),
      },
      examples: [
        "posthorn sources update acme github --type pointer:/action --rate-limit 50",
        "posthorn sources update acme github --disable",
        "posthorn sources update acme github --enable --type=",
      ],
      async run({ api, out, args, flags, fields }) {
        const body = { ...(await fieldsFrom(flags.from)), ...fields, ...(await sourceFields(flags)) }
        showSource(out, await api.send("PATCH", routeOf(args), { body: requireChanges(body) }))
      },
    }),
    delete: action({
      summary: "delete a source; its URL ends at once, and its messages stay",
      args: [APP, SOURCE],
      flags: YES_FLAG,
      examples: ["posthorn sources delete acme github --yes"],
      async run({ api, out, args, flags }) {
        await confirm(flags.yes, async () => {
          const { id, name } = await api.get<SourceOut>(routeOf(args))
          const { lastAcceptedAt } = await api.get<SourceActivityOut>(`${routeOf(args)}/activity`)
          const last =
            lastAcceptedAt === null ? "took nothing in lately" : `took a webhook in at ${lastAcceptedAt}`
          return `Source ${id} (${name}), which ${last}, would be deleted.`
        })
        out.say(await api.send("DELETE", routeOf(args)), `Source ${args.source} is deleted.`)
      },
    }),
    rotate: action({
      summary: "verify with a new secret, and with the old one for a day",
      args: [APP, SOURCE],
      flags: {
        secret: SOURCE_FIELDS.secret,
        "secret-file": SOURCE_FIELDS["secret-file"],
        grace: span("how long the old one is accepted, too (1d)", { field: "gracePeriodSeconds" }),
      },
      examples: ["posthorn sources rotate acme github --secret-file secret.txt --grace 2h"],
      async run({ api, out, args, flags, fields }) {
        const secret = await secretOf(flags)
        if (secret === undefined)
          throw new UsageError("the new secret is missing: --secret-file FILE, or --secret")
        showSource(out, await api.post(`${routeOf(args)}/secret/rotate`, { ...fields, secret }))
      },
    }),
    activity: action({
      summary: "what came to a source lately, and the newest requests that were refused",
      args: [APP, SOURCE],
      examples: ["posthorn sources activity acme github"],
      async run({ api, out, args }) {
        showActivity(out, await api.get(`${routeOf(args)}/activity`))
      },
    }),
  },
}

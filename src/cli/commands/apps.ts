/** `posthorn apps`: applications. */

import type { ApplicationOut } from "../../api/schemas/application.ts"
import { countText } from "../../core/wording.ts"
import { path } from "../api.ts"
import { action, type Group, PAGE_FLAGS, uid, YES_FLAG } from "../command.ts"
import { confirm } from "../confirm.ts"
import { clearableNumber, pairs, text } from "../flag.ts"
import { type List, showList } from "../lists.ts"
import type { Output } from "../output.ts"
import { type Column, shortId, shortTime, time } from "../table.ts"
import { APP, requireChanges, waitingFor } from "./shared.ts"

const COLUMNS: readonly Column<ApplicationOut>[] = [
  { title: "ID", value: ({ id }) => id, short: shortId },
  { title: "UID", value: ({ uid: own }) => own, cut: true },
  { title: "NAME", value: ({ name }) => name, cut: true },
  { title: "RATE", value: ({ throttleRate }) => throttleRate, right: true },
  { title: "CREATED", value: ({ createdAt }) => time(createdAt), short: shortTime, minor: true },
]

const FIELDS = {
  uid,
  "rate-limit": clearableNumber("N", "the most requests in any second; empty for no limit", {
    field: "throttleRate",
  }),
  metadata: pairs("KEY=VALUE", "a text of your own", { field: "metadata" }),
} as const

function show(out: Output, application: ApplicationOut): void {
  const { rateLimit: _same, createdAt, updatedAt, ...rest } = application
  out.record(application, { ...rest, createdAt: time(createdAt), updatedAt: time(updatedAt) })
}

export const command: Group = {
  summary: "applications: the customers whose endpoints get webhooks",
  actions: {
    list: action({
      summary: "list applications, the oldest first",
      flags: PAGE_FLAGS,
      examples: ["posthorn apps list", "posthorn apps list --all --json"],
      run: (run) => showList(run, { route: "/app", columns: COLUMNS, none: "There are no applications." }),
    }),
    get: action({
      summary: "show an application",
      args: [APP],
      examples: ["posthorn apps get acme"],
      async run({ api, out, args }) {
        show(out, await api.get(path`/app/${args.app}`))
      },
    }),
    create: action({
      summary: "create an application",
      args: [{ name: "name", about: "what it is called" }],
      flags: FIELDS,
      examples: [
        'posthorn apps create "Acme Ltd." --uid acme-2',
        "posthorn apps create Globex --rate-limit 50 --metadata plan=gold",
      ],
      absentStore: () => "create",
      async run({ api, out, args, fields }) {
        show(out, await api.post("/app", { name: args.name, ...fields }))
      },
    }),
    update: action({
      summary: "change an application; what is not given stays",
      args: [APP],
      flags: { name: text("NAME", "what it is called", { field: "name" }), ...FIELDS },
      examples: ['posthorn apps update acme --name "Acme Inc."', "posthorn apps update acme --rate-limit="],
      async run({ api, out, args, fields }) {
        const body = requireChanges(fields)
        show(out, await api.send("PATCH", path`/app/${args.app}`, { body }))
      },
    }),
    delete: action({
      summary: "delete an application with its endpoints; their waiting deliveries are cancelled",
      args: [APP],
      flags: YES_FLAG,
      examples: ["posthorn apps delete acme --yes"],
      async run({ api, out, args, flags }) {
        const route = path`/app/${args.app}`
        await confirm(flags.yes, async () => {
          const { id, name } = await api.get<ApplicationOut>(route)
          const endpoints = await api.get<List<unknown>>(`${route}/endpoint`, { limit: 250 })
          const many = `${endpoints.done ? "" : "more than "}${countText(endpoints.data.length, "endpoint")}`
          const waiting = countText(await waitingFor(api, id), "waiting delivery", "waiting deliveries")
          return `Application ${id} (${name}) would be deleted with ${many}, and ${waiting} cancelled.`
        })
        out.say(await api.send("DELETE", route), `Application ${args.app} is deleted.`)
      },
    }),
  },
}

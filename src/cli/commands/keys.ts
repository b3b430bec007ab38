/** `posthorn keys`: API keys. */
import type { KeyOut } from "../../api/schemas/key.ts"
import { KEY_SCOPES } from "../../core/key-scope.ts"
import { path } from "../api.ts"
import { action, type Group, PAGE_FLAGS, YES_FLAG } from "../command.ts"
import { confirm } from "../confirm.ts"
import { choice, on, text, texts } from "../flag.ts"
import { showList } from "../lists.ts"
import { type Column, shortId, shortTime, time } from "../table.ts"
import { moment, span } from "../time-flags.ts"
import { UsageError } from "../usage-error.ts"

const COLUMNS: readonly Column<KeyOut>[] = [
  { title: "ID", value: ({ id }) => id },
  { title: "NAME", value: ({ name }) => name, cut: true },
  { title: "SCOPE", value: ({ scope }) => scope },
  { title: "APP", value: ({ appId }) => appId, short: shortId },
  { title: "STATE", value: stateOf },
  { title: "EXPIRES", value: ({ expiresAt }) => time(expiresAt), short: shortTime },
  { title: "LAST USED", value: ({ lastUsedAt }) => time(lastUsedAt), short: shortTime },
]

/** A revocation may be in the future. */
function stateOf({ revokedAt, expiresAt }: KeyOut): string {
  const isOver = (at: Date | string | null) => at !== null && new Date(at).getTime() <= Date.now()
  if (isOver(revokedAt)) return "revoked"
  if (isOver(expiresAt)) return "expired"
  return revokedAt === null ? "valid" : `until ${time(revokedAt)}`
}

export const command: Group = {
  summary: "API keys: who may use the API",
  actions: {
    list: action({
      summary: "list keys, also those that were revoked or expired in the last 30 days",
      flags: {
        app: text("APP", "of this application, by id or uid", { field: "app_id" }),
        organization: on("of the organization itself, without those of its applications and their portals", {
          field: "organization",
        }),
        ...PAGE_FLAGS,
      },
      examples: ["posthorn keys list", "posthorn keys list --organization"],
      run: (run) =>
        showList(run, { route: "/key", query: run.fields, columns: COLUMNS, none: "There are no keys." }),
    }),
    create: action({
      summary: "create a key; it is printed this once",
      args: [{ name: "name", about: "what it is for" }],
      flags: {
        scope: choice(KEY_SCOPES, "what it may do: everything, one application, look, connect an agent", {
          field: "scope",
        }),
        app: text("APP", "the one application that it reaches, by id or uid", { field: "appId" }),
        endpoint: texts(
          "ENDPOINT",
          "an endpoint that an agent's key serves; by default all that name the agent",
          {
            field: "endpointIds",
          },
        ),
        capability: texts("CAPABILITY", "all that an application's key may do, such as ManageEndpoint", {
          field: "capabilities",
        }),
        expires: moment("when it ends: a time, or a span such as 30d from now", "after", {
          field: "expiresAt",
        }),
      },
      examples: [
        "posthorn keys create deploy --scope admin --expires 30d",
        "posthorn keys create acme --scope application --app acme",
        "posthorn keys create dashboard --scope read",
        "posthorn keys create hub --scope agent --app acme",
      ],
      absentStore: ({ app }) => (app === undefined ? "create" : "refuse"),
      async run({ api, out, args, flags, fields }) {
        if (flags.scope === undefined) throw new UsageError(`--scope is missing: ${KEY_SCOPES.join(", ")}`)
        const made = await api.post<{ readonly token: string }>("/key", { name: args.name, ...fields })
        out.say(made, made.token)
      },
    }),
    revoke: action({
      summary: "revoke a key",
      args: [{ name: "key", about: "the key's id, the middle part of ph_ID_…" }],
      flags: {
        in: span("remains valid for this time; revoked at once without it", { field: "inSeconds" }),
        ...YES_FLAG,
      },
      examples: ["posthorn keys revoke KEY_ID --yes", "posthorn keys revoke KEY_ID --in 1d --yes"],
      async run({ api, out, args, flags, fields }) {
        const route = path`/key/${args.key}`
        await confirm(flags.yes, async () => {
          const { id, name, scope, lastUsedAt } = await api.get<KeyOut>(route)
          return `Key ${id} (${name}, ${scope}, last used ${time(lastUsedAt) ?? "never"}) would be revoked.`
        })
        out.say(await api.send("DELETE", route, { query: fields }), `Key ${args.key} is revoked.`)
      },
    }),
  },
}

/** `posthorn event-types`: event types. */

import type { EventTypeOut } from "../../api/schemas/event-type.ts"
import { countText } from "../../core/wording.ts"
import { path } from "../api.ts"
import { action, type Group, PAGE_FLAGS, YES_FLAG } from "../command.ts"
import { confirm } from "../confirm.ts"
import { on, text, texts } from "../flag.ts"
import { showList } from "../lists.ts"
import type { Output } from "../output.ts"
import { fieldsFrom, readSource } from "../source.ts"
import { type Column, time } from "../table.ts"

const NAME = { name: "name", about: "the event type, such as invoice.paid" } as const

const COLUMNS: readonly Column<EventTypeOut>[] = [
  { title: "NAME", value: ({ name }) => name },
  { title: "GROUP", value: ({ groupName }) => groupName },
  { title: "ARCHIVED", value: ({ archived }) => archived },
  { title: "DEPRECATED", value: ({ deprecated }) => deprecated },
  { title: "DESCRIPTION", value: ({ description }) => description, cut: true },
]

function show(out: Output, type: EventTypeOut): void {
  const { featureFlag: _older, createdAt, updatedAt, ...rest } = type
  out.record(type, { ...rest, createdAt: time(createdAt), updatedAt: time(updatedAt) })
}

interface Imported {
  readonly data: {
    readonly modified: readonly string[]
    readonly archived: readonly string[]
    readonly to_modify?: readonly { readonly name: string }[]
    readonly to_archive?: readonly string[]
  }
}

function importText({ data }: Imported, dryRun: boolean): string {
  const changed = dryRun ? (data.to_modify ?? []).map(({ name }) => name) : data.modified
  const archived = dryRun ? (data.to_archive ?? []) : data.archived
  const would = dryRun ? "would be" : changed.length === 1 ? "is" : "are"
  const names = [...changed, ...archived.map((name) => `${name} (archived)`)]
  const sentence = `${countText(changed.length, "event type")} ${would} created or changed, ${archived.length} archived`
  return names.length === 0 ? "Nothing changes." : `${sentence}: ${names.join(", ")}`
}

export const command: Group = {
  summary: "event types: the catalogue of what is sent, with schemas",
  actions: {
    list: action({
      summary: "list event types by name",
      flags: { archived: on("those that were archived too", { field: "include_archived" }), ...PAGE_FLAGS },
      examples: ["posthorn event-types list", "posthorn event-types list --archived --json"],
      run: (run) =>
        showList(run, {
          route: "/event-type",
          query: { ...run.fields, with_content: run.out.json },
          columns: COLUMNS,
          none: "There are no event types.",
        }),
    }),
    get: action({
      summary: "show an event type with its schemas",
      args: [NAME],
      examples: ["posthorn event-types get invoice.paid"],
      async run({ api, out, args }) {
        show(out, await api.get(path`/event-type/${args.name}`))
      },
    }),
    create: action({
      summary: "create an event type, or bring back one that was archived",
      args: [NAME],
      flags: {
        description: text("TEXT", "what it means", { field: "description" }),
        group: text("GROUP", "where it is listed", { field: "groupName" }),
        "feature-flag": texts("FLAG", "only portals with this flag see it", { field: "featureFlags" }),
        deprecated: on("should no longer be used", { field: "deprecated" }),
        schema: text("FILE", "its JSON schema; an example in it can be sent by posthorn endpoints test"),
      },
      examples: [
        'posthorn event-types create invoice.sent --description "An invoice was sent"',
        "posthorn event-types create invoice.voided --description Voided --schema schema.json --group billing",
      ],
      absentStore: () => "create",
      async run({ api, out, args, flags, fields }) {
        const schemas = flags.schema === undefined ? {} : { schemas: { 1: await fieldsFrom(flags.schema) } }
        show(out, await api.post("/event-type", { name: args.name, description: "", ...fields, ...schemas }))
      },
    }),
    archive: action({
      summary: "archive an event type; what was sent keeps its meaning, and create brings it back",
      args: [NAME],
      examples: ["posthorn event-types archive invoice.paid"],
      async run({ api, out, args }) {
        out.say(
          await api.send("DELETE", path`/event-type/${args.name}`),
          `Event type ${args.name} is archived.`,
        )
      },
    }),
    import: action({
      summary: "create and replace event types from the webhooks of an OpenAPI document, JSON or YAML",
      args: [{ name: "file", about: "the document; - is standard input" }],
      flags: {
        "dry-run": on("only says what would change", { field: "dryRun" }),
        "replace-all": on("archives those that are not in the document", { field: "replaceAll" }),
        ...YES_FLAG,
      },
      examples: [
        "posthorn event-types import openapi.yaml --dry-run",
        "posthorn event-types import openapi.yaml",
        "posthorn event-types import openapi.yaml --replace-all --yes",
      ],
      absentStore: ({ "dry-run": dry }) => (dry ? "empty" : "create"),
      async run({ api, out, args, flags, fields }) {
        const { text: specRaw } = await readSource({ file: args.file })
        const { "dry-run": dryRun = false, "replace-all": replaceAll = false } = flags
        const post = (body: object) => api.post<Imported>("/event-type/import/openapi", { specRaw, ...body })
        if (replaceAll && !dryRun)
          await confirm(flags.yes, async () => importText(await post({ ...fields, dryRun: true }), true))
        const imported = await post(fields)
        out.say(imported, importText(imported, dryRun))
      },
    }),
  },
}

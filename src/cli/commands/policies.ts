/** `posthorn policies`: retry policies. */
import { path } from "../api.ts"
import { action, type Group, TABLE_FLAGS, YES_FLAG } from "../command.ts"
import { confirm } from "../confirm.ts"
import { wholeNumber } from "../flag.ts"
import type { Output } from "../output.ts"
import { parseJson, readSource, SOURCE_FLAGS } from "../source.ts"
import { type Column, time } from "../table.ts"
import { spanText } from "../time-flags.ts"
import { UsageError } from "../usage-error.ts"

interface Policy {
  readonly name: string
  readonly preset: boolean
  readonly policy: {
    readonly maxAttempts?: number | null
    readonly maxAge?: number | null
    readonly retryable?: string
    readonly delays?: unknown
  }
}

interface Preview {
  readonly seconds: readonly number[]
  readonly times: readonly string[]
  readonly protection: { readonly [field: string]: { readonly text: string } }
}

const NAME = { name: "name", about: "the policy's name" } as const

const COLUMNS: readonly Column<Policy>[] = [
  { title: "NAME", value: ({ name }) => name },
  { title: "PRESET", value: ({ preset }) => preset },
  { title: "ATTEMPTS", value: ({ policy }) => policy.maxAttempts, right: true },
  {
    title: "AGE",
    value: ({ policy }) => (policy.maxAge == null ? null : spanText(policy.maxAge)),
    right: true,
  },
  { title: "RETRIES", value: ({ policy }) => policy.retryable },
  { title: "DELAYS", value: ({ policy }) => JSON.stringify(policy.delays), cut: true },
]

const PREVIEW: readonly Column<readonly [number, number, string]>[] = [
  { title: "ATTEMPT", value: ([attempt]) => attempt, right: true },
  { title: "AFTER", value: ([, seconds]) => spanText(seconds), right: true },
  { title: "IF THE FIRST WERE NOW", value: ([, , at]) => time(at) },
]

function show(out: Output, document: Policy): void {
  const { name, preset, policy } = document
  out.record(document, { name, preset, ...policy })
}

export const command: Group = {
  summary: "retry policies: the presets and your own",
  actions: {
    list: action({
      summary: "list the presets and your own policies",
      flags: TABLE_FLAGS,
      examples: ["posthorn policies list"],
      absentStore: () => "empty",
      async run({ api, out }) {
        const list = await api.get<{ readonly data: readonly Policy[] }>("/retry-policy")
        out.table(list, list.data, COLUMNS, "There are no policies.")
      },
    }),
    get: action({
      summary: "show a policy",
      args: [NAME],
      examples: ["posthorn policies get standard"],
      absentStore: () => "empty",
      async run({ api, out, args }) {
        show(out, await api.get(path`/retry-policy/${args.name}`))
      },
    }),
    put: action({
      summary: "create or replace a policy; endpoints that use it follow from their next attempt",
      args: [NAME, { name: "-", about: "reads the policy from standard input", optional: true }],
      flags: SOURCE_FLAGS,
      examples: [
        `posthorn policies put patient --data '{"delays": [60, 600, 3600], "maxAttempts": 4}'`,
        "posthorn policies put patient --file policy.json",
      ],
      absentStore: () => "create",
      async run({ api, out, args, flags }) {
        const body = parseJson(await readSource(flags, args["-"]))
        show(out, await api.send("PUT", path`/retry-policy/${args.name}`, { body }))
      },
    }),
    delete: action({
      summary: "delete a policy that no endpoint uses",
      args: [NAME],
      flags: YES_FLAG,
      examples: ["posthorn policies delete patient --yes"],
      async run({ api, out, args, flags }) {
        const route = path`/retry-policy/${args.name}`
        await confirm(flags.yes, async () => {
          const { name } = await api.get<Policy>(route)
          return `Policy ${name} would be deleted.`
        })
        out.say(await api.send("DELETE", route), `Policy ${args.name} is deleted.`)
      },
    }),
    preview: action({
      summary: "when a policy would try, jitter left out, and how it protects an endpoint that fails",
      args: [{ name: "policy", about: "a policy's name, or a policy as JSON", optional: true }],
      flags: {
        ...SOURCE_FLAGS,
        attempts: wholeNumber("N", "the most attempts (100)", { field: "attempts" }),
      },
      examples: [
        "posthorn policies preview standard",
        `posthorn policies preview '{"delays": {"strategy": "exponential", "base": 2, "cap": 600}, "maxAttempts": 8}'`,
        "posthorn policies preview --file policy.json",
      ],
      absentStore: () => "empty",
      async run({ api, out, args, flags, fields }) {
        const preview = await api.post<Preview>("/retry-policy/preview", {
          policy: await policyOf(args.policy, flags),
          ...fields,
        })
        const rows = preview.seconds.map((after, i) => [i + 1, after, preview.times[i]!] as const)
        out.table(preview, rows, PREVIEW, "It would never try.")
        const texts = Object.entries(preview.protection).map(([field, { text }]) => [field, text])
        if (!out.json) out.record(preview, Object.fromEntries(texts))
      },
    }),
  },
}

async function policyOf(
  given: string | undefined,
  flags: { readonly data?: string; readonly file?: string },
) {
  if (given === undefined || given === "-") return parseJson(await readSource(flags, given))
  if (flags.data !== undefined || flags.file !== undefined)
    throw new UsageError("say once which policy: its name, JSON, --data, --file, or - for standard input")
  return given.trimStart().startsWith("{") ? parseJson({ text: given, name: "the policy" }) : given
}

/** The fields of an endpoint as flags, columns and output. */
import { isDeepStrictEqual } from "node:util"
import type { EndpointOut } from "../../api/schemas/endpoint.ts"
import { parsePolicy } from "../../core/parse-policy.ts"
import type { PolicyInput } from "../../core/policy.ts"
import { writePolicy } from "../../core/write-policy.ts"
import { uid } from "../command.ts"
import { clearable, clearableNumber, clearableTexts, type Flag, pairs, text } from "../flag.ts"
import type { Output } from "../output.ts"
import { parseJson } from "../source.ts"
import { type Column, shortId, shortTime, time } from "../table.ts"

/** A text that begins with `{` is a policy as JSON. */
const retry: Flag<unknown> = {
  ...clearable("POLICY", "a policy's name, or a policy as JSON; empty for the engine's", { field: "retry" }),
  read: ([given = ""]) =>
    given.trimStart().startsWith("{") ? parseJson({ text: given, name: "--retry" }) : given || null,
}

export const ENDPOINT_FIELDS = {
  uid,
  description: text("TEXT", "what it is for", { field: "description" }),
  type: clearableTexts("TYPE", "only this event type; several are any of them; empty for every type", {
    field: "eventTypes",
  }),
  channel: clearableTexts("CHANNEL", "only this channel; several are any of them; empty for all", {
    field: "channels",
  }),
  retry,
  "rate-limit": clearableNumber("N", "the most requests in any second; empty for no limit", {
    field: "throttleRate",
  }),
  concurrency: clearableNumber("N", "the most requests at once; empty for the engine's", {
    field: "concurrency",
  }),
  metadata: pairs("KEY=VALUE", "a text of your own", { field: "metadata" }),
  from: text("FILE", "a JSON file with any of the API's fields, such as auth and tls; - is standard input"),
} as const

export const HEADER = pairs("NAME:VALUE", "a header that every request has", { between: ":" })

export const ENDPOINT_COLUMNS: readonly Column<EndpointOut>[] = [
  { title: "ID", value: ({ id }) => id, short: shortId },
  { title: "UID", value: (endpoint) => endpoint.uid, cut: true },
  { title: "URL", value: ({ url }) => url, cut: true, least: 24 },
  { title: "TYPES", value: ({ eventTypes }) => eventTypes ?? "all", cut: true },
  { title: "STATE", value: stateOf, short: shortState },
]

function stateOf({ disabled, paused, heldUntil, breaker }: EndpointOut): string {
  if (disabled) return "disabled"
  if (paused) return "paused"
  if (breaker.state !== "closed") return `breaker ${breakerText(breaker)}`
  return heldUntil === null ? "on" : `held until ${time(heldUntil)}`
}

function breakerText({ state, until }: EndpointOut["breaker"]): string {
  return `${state.replace("_", "-")}${until === null ? "" : ` until ${time(until)}`}`
}

function budgetText({ tokens, left, retriesAt }: NonNullable<EndpointOut["budget"]>): string {
  return `${left} of ${tokens} tokens left${retriesAt === null ? "" : `, retries wait until ${time(retriesAt)}`}`
}

/** `breaker open, ends in 4m 30s`: an absolute time would leave no room for the URL. */
function shortState(text: string): string {
  return text.replace(/ until (\S+)$/, (_, at) => `, ends ${shortTime(at)}`)
}

/** Without the older names of fields. */
export function showEndpoint(out: Output, endpoint: EndpointOut): void {
  const { rateLimit: _rate, filterTypes: _types, version: _version, ...rest } = endpoint
  const { heldUntil, pausedAt, disabledAt, breaker, budget, createdAt, updatedAt } = rest
  out.record(endpoint, {
    ...rest,
    policy: ownFields(endpoint.policy as PolicyInput),
    heldUntil: time(heldUntil),
    pausedAt: time(pausedAt),
    disabledAt: time(disabledAt),
    breaker: breakerText(breaker),
    budget: budget && budgetText(budget),
    createdAt: time(createdAt),
    updatedAt: time(updatedAt),
  })
}

type Fields = { readonly [name: string]: unknown }

/** The schedule of a policy, and the other fields that are not the defaults; of an object, those of its fields. */
function ownFields(policy: PolicyInput): Fields {
  const { delays, maxAttempts, maxAge } = policy
  const schedule = { delays, maxAttempts, maxAge } as PolicyInput
  return { ...schedule, ...differing({ ...policy }, { ...writePolicy(parsePolicy(schedule)) }) }
}

function differing(fields: Fields, usual: Fields): Fields {
  const own = Object.entries(fields).filter(([name, value]) => !isDeepStrictEqual(value, usual[name]))
  return Object.fromEntries(
    own.map(([name, value]) => [
      name,
      isAlike(value, usual[name]) ? differing(value, usual[name] as Fields) : value,
    ]),
  )
}

/** An absent field of `retention` has a meaning, so objects with other fields than the default are shown whole. */
function isAlike(value: unknown, usual: unknown): value is Fields {
  const namesOf = (one: unknown) => (isObject(one) ? Object.keys(one).sort() : null)
  return isObject(value) && isDeepStrictEqual(namesOf(value), namesOf(usual))
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}

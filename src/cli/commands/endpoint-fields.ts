/** The fields of an endpoint as flags, columns and output. */
import type { EndpointOut } from "../../api/schemas/endpoint.ts"
import type { Policy } from "../../core/policy.ts"
import { uid } from "../command.ts"
import { clearable, clearableNumber, clearableTexts, type Flag, pairs, text } from "../flag.ts"
import type { Output } from "../output.ts"
import { parseJson } from "../source.ts"
import { type Column, shortId, time } from "../table.ts"

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
  { title: "STATE", value: stateOf },
]

function stateOf({ disabled, paused, heldUntil, breaker }: EndpointOut): string {
  if (disabled) return "disabled"
  if (paused) return "paused"
  if (breaker.state === "open") return `breaker open until ${time(breaker.until)}`
  if (breaker.state !== "closed") return `breaker ${breaker.state.replace("_", "-")}`
  return heldUntil === null ? "on" : `held until ${time(heldUntil)}`
}

/** Without the older names of fields. */
export function showEndpoint(out: Output, endpoint: EndpointOut): void {
  const { rateLimit: _rate, filterTypes: _types, version: _version, ...rest } = endpoint
  const { heldUntil, createdAt, updatedAt } = rest
  const { delays, maxAttempts, maxAge } = endpoint.policy as Partial<Policy>
  out.record(endpoint, {
    ...rest,
    policy: { delays, maxAttempts, maxAge },
    heldUntil: time(heldUntil),
    createdAt: time(createdAt),
    updatedAt: time(updatedAt),
  })
}

/** The fields of a source as flags, columns and output. */
import type { SourceActivityOut, SourceOut } from "../../api/schemas/source.ts"
import { HANDSHAKES } from "../../core/handshake.ts"
import { InvalidValue } from "../../core/invalid-value.ts"
import { printable } from "../../core/text.ts"
import { READY_SCHEMES } from "../../core/verification-schemes.ts"
import { choice, clearableNumber, type Flag, text, wholeNumber } from "../flag.ts"
import type { Output } from "../output.ts"
import { readSource } from "../source.ts"
import { type Column, shortId, shortTime, time } from "../table.ts"
import { UsageError } from "../usage-error.ts"

/** `header:NAME` and `pointer:/PATH` are places in the request; an event type has no colon. */
function placeIn(given: string): unknown {
  const [, kind, place] = /^(header|pointer):(.+)$/.exec(given) ?? []
  if (kind !== undefined) return { [kind]: place }
  if (given.includes(":"))
    throw new InvalidValue(`must be header:NAME or pointer:/PATH, not "${printable(given)}"`)
  return given
}

const place = (value: string, about: string, field: string): Flag<unknown> => ({
  ...{ value, about, field },
  read: (given) => placeIn(given.at(-1)!) || null,
})

export const SOURCE_FIELDS = {
  description: text("TEXT", "what it is for", { field: "description" }),
  scheme: choice(READY_SCHEMES, "how its requests are verified; --from describes another scheme", {
    field: "verification",
  }),
  secret: text("SECRET", "what the provider signs with; every user of the machine can read a command line", {
    field: "secret",
  }),
  "secret-file": text("FILE", "the same from a file; - is standard input"),
  type: place("TYPE", "an event type, header:NAME or pointer:/PATH; inbound.NAME without it", "eventType"),
  duplicates: place(
    "PLACE",
    "the provider's id of a delivery: header:NAME, pointer:/PATH, scheme or off",
    "deduplication",
  ),
  handshake: choice([...HANDSHAKES, "none"], "the provider's question whether somebody reads the URL"),
  "verify-token": text("TEXT", "of the handshake meta: the text that you enter there, too"),
  "rate-limit": wholeNumber("N", "the most requests in a second, of each process (1000)", {
    field: "rateLimit",
  }),
  "max-bytes": clearableNumber("N", "the largest body; empty for the server's limit", { field: "maxBytes" }),
  from: text("FILE", "a JSON file with any of the API's fields; - is standard input"),
} as const

interface SecretGiven {
  readonly secret?: string
  readonly "secret-file"?: string
}

interface Given extends SecretGiven {
  readonly handshake?: (typeof HANDSHAKES)[number] | "none"
  readonly "verify-token"?: string
}

/** The fields that need more than a flag. */
export async function sourceFields(flags: Given): Promise<{ readonly [field: string]: unknown }> {
  const { handshake, "verify-token": verifyToken } = flags
  const kind = handshake ?? (verifyToken === undefined ? undefined : "meta")
  if (verifyToken !== undefined && kind !== "meta")
    throw new UsageError(`--verify-token is of the handshake meta, and --handshake is ${kind}`)
  const secret = await secretOf(flags)
  const token = verifyToken === undefined ? {} : { verifyToken }
  return {
    ...(kind === undefined ? {} : { handshake: kind === "none" ? null : { kind, ...token } }),
    ...(secret === undefined ? {} : { secret }),
  }
}

export async function secretOf({ secret, "secret-file": file }: SecretGiven): Promise<string | undefined> {
  if (file === undefined) return secret
  if (secret !== undefined)
    throw new UsageError("--secret and --secret-file are two secrets; give one of them")
  // Editors end a file with a line break.
  return (await readSource({ file })).text.replace(/\r?\n$/, "")
}

const placeText = (value: unknown) =>
  typeof value === "object" && value !== null
    ? Object.entries(value).flat().join(":")
    : (value as string | null)

export const SOURCE_COLUMNS: readonly Column<SourceOut>[] = [
  { title: "ID", value: ({ id }) => id, short: shortId },
  { title: "NAME", value: ({ name }) => name, cut: true },
  { title: "SCHEME", value: ({ verification }) => verification.scheme },
  { title: "TYPE", value: ({ eventType, name }) => placeText(eventType) ?? `inbound.${name}`, cut: true },
  { title: "STATE", value: ({ enabled }) => (enabled ? "on" : "disabled") },
  { title: "URL", value: ({ url }) => url ?? null, cut: true, minor: true },
]

export function showSource(out: Output, source: SourceOut): void {
  const { createdAt, updatedAt, secrets, eventType, deduplication, handshake, ...rest } = source
  const { count, overlapEndsAt } = secrets
  out.record(source, {
    ...rest,
    eventType: placeText(eventType) ?? `inbound.${source.name}`,
    deduplication: placeText(deduplication),
    handshake: handshake?.kind ?? null,
    secrets: overlapEndsAt === null ? count : `${count}, the old one until ${time(overlapEndsAt)}`,
    createdAt: time(createdAt),
    updatedAt: time(updatedAt),
  })
}

type Refused = SourceActivityOut["recent"][number]

const REFUSED_COLUMNS: readonly Column<Refused>[] = [
  { title: "AT", value: ({ at }) => time(at), short: shortTime },
  { title: "REASON", value: ({ reason, detail }) => (detail === null ? reason : `${reason} (${detail})`) },
  { title: "METHOD", value: ({ method }) => method },
  { title: "PATH", value: ({ path }) => path || "/", cut: true },
  { title: "FROM", value: ({ remoteAddress }) => remoteAddress },
  { title: "USER AGENT", value: ({ userAgent }) => userAgent, cut: true, minor: true },
]

export function showActivity(out: Output, activity: SourceActivityOut): void {
  const { recent, refused, lastAcceptedAt, lastRefusedAt, ...counts } = activity
  const reasons = Object.entries(refused).map(([reason, count]) => `${count} ${reason}`)
  out.record(activity, {
    ...counts,
    refused: reasons.length === 0 ? 0 : reasons.join(", "),
    lastAcceptedAt: time(lastAcceptedAt),
    lastRefusedAt: time(lastRefusedAt),
  })
  if (!out.json && recent.length > 0) out.table(activity, recent, REFUSED_COLUMNS, "")
}

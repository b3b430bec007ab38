/** Reads the frames of a server (core/relay-protocol.ts). Unknown fields are ignored. */
import { HEADER_NAME } from "../core/header.ts"
import type { HeaderPair } from "../core/inbound-request.ts"
import { InvalidValue } from "../core/invalid-value.ts"
import type {
  EncodedBody,
  ErrorFrame,
  EventFrame,
  ServerFrame,
  SettledFrame,
  WelcomeFrame,
} from "../core/relay-protocol.ts"
import { cleanTraceparent } from "../core/traceparent.ts"

type Fields = { readonly [field: string]: unknown }

const MOST_WORD = 512
const MOST_HEADERS = 2000
const STATUSES = ["delivered", "dead", "failed", "pending"] as const
const ERROR_CODES = ["unknown_kind", "late"] as const

/** A later version of the server may send kinds that this agent does not know. */
export interface UnknownFrame {
  readonly kind: "unknown"
  readonly name: string
}

/** Throws InvalidValue. */
export function readServerFrame(text: string): ServerFrame | UnknownFrame {
  const fields = objectFrom(text)
  const kind = word(fields, "kind")
  switch (kind) {
    case "welcome":
      return welcome(fields)
    case "event":
      return event(fields)
    case "settled":
      return settled(fields)
    case "drain":
      return { kind }
    case "error":
      return error(fields)
    default:
      return { kind: "unknown", name: kind }
  }
}

function objectFrom(text: string): Fields {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new InvalidValue("the frame is not JSON")
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Fields
  throw new InvalidValue("the frame is not a JSON object")
}

function welcome(fields: Fields): WelcomeFrame {
  return {
    kind: "welcome",
    session: word(fields, "session"),
    epoch: number(fields, "epoch", 0),
    heartbeat: number(fields, "heartbeat", 1),
  }
}

function event(fields: Fields): EventFrame {
  const method = word(fields, "method")
  if (!HEADER_NAME.test(method)) throw new InvalidValue("method is not an HTTP method")
  const receivedAt = word(fields, "receivedAt")
  if (Number.isNaN(Date.parse(receivedAt))) throw new InvalidValue("receivedAt is not a date")
  return {
    kind: "event",
    id: word(fields, "id"),
    attempt: number(fields, "attempt", 0),
    manual: fields.manual === true,
    token: word(fields, "token"),
    messageId: word(fields, "messageId"),
    eventType: word(fields, "eventType"),
    endpointId: word(fields, "endpointId"),
    sourceId: orNull(fields, "sourceId", word),
    receivedAt,
    method,
    path: text(fields, "path"),
    query: text(fields, "query"),
    headers: headers(fields),
    deadline: deadline(fields),
    traceparent: cleanTraceparent(orNull(fields, "traceparent", word)),
    ...body(fields),
  }
}

/** A server of an earlier version may send a fraction: closing the connection would bring the same event again. */
function deadline(fields: Fields): number {
  const { deadline: given } = fields
  if (typeof given === "number" && Number.isFinite(given) && given >= 1) return Math.ceil(given)
  throw new InvalidValue("deadline is not a number of at least 1")
}

function settled(fields: Fields): SettledFrame {
  const { status = null } = fields
  const known = STATUSES.find((one) => one === status) ?? null
  if (known !== status) throw new InvalidValue(`status is none of ${STATUSES.join(", ")}`)
  return { kind: "settled", id: word(fields, "id"), attempt: number(fields, "attempt", 0), status: known }
}

function error(fields: Fields): ErrorFrame {
  const code = ERROR_CODES.find((one) => one === fields.code)
  if (code === undefined) throw new InvalidValue(`code is none of ${ERROR_CODES.join(", ")}`)
  return { kind: "error", code, detail: text(fields, "detail"), id: orNull(fields, "id", word) }
}

function body(fields: Fields): EncodedBody {
  const { body: given, base64 } = fields
  if (typeof given === "string" && base64 === undefined) return { body: given }
  const isBase64 =
    typeof base64 === "string" && base64.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(base64)
  if (isBase64 && given === undefined) return { base64 }
  throw new InvalidValue("it has neither one text body nor one base64")
}

function headers({ headers: given }: Fields): HeaderPair[] {
  const isPair = (pair: unknown) =>
    Array.isArray(pair) && pair.length === 2 && pair.every((one) => typeof one === "string")
  if (Array.isArray(given) && given.length <= MOST_HEADERS && given.every(isPair)) return given
  throw new InvalidValue(`headers are not at most ${MOST_HEADERS} pairs of texts`)
}

function text(fields: Fields, field: string): string {
  const value = fields[field]
  if (typeof value === "string") return value
  throw new InvalidValue(`${field} is not a text`)
}

function word(fields: Fields, field: string): string {
  const value = text(fields, field)
  if (value !== "" && value.length <= MOST_WORD) return value
  throw new InvalidValue(`${field} has not between 1 and ${MOST_WORD} characters`)
}

function number(fields: Fields, field: string, least: number): number {
  const value = fields[field]
  if (Number.isSafeInteger(value) && (value as number) >= least) return value as number
  throw new InvalidValue(`${field} is not a whole number of at least ${least}`)
}

function orNull<T>(fields: Fields, field: string, read: (fields: Fields, field: string) => T): T | null {
  return fields[field] === null || fields[field] === undefined ? null : read(fields, field)
}

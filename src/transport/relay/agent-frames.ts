/** Parses the frames of agents. They come from outside: every field is checked, and unknown fields are ignored. */
import {
  type AckFrame,
  type AckResult,
  AGENT_NAME,
  type AgentFrame,
  type EncodedBody,
  MOST_CREDIT,
  MOST_RESPONSE_BYTES,
} from "../../core/relay-protocol.ts"
import { excerpt } from "../result.ts"

export type ParsedFrame =
  | { readonly kind: "frame"; readonly frame: AgentFrame }
  /** A frame of another version: it is answered, and the connection stays. */
  | { readonly kind: "unknown"; readonly name: string }
  /** The connection is closed with this reason. */
  | { readonly kind: "bad"; readonly problem: string }

const LONGEST_NAME = 64
const LONGEST_ID = 64
const LONGEST_ERROR = 2048
const RESULTS: readonly AckResult[] = ["success", "permanent", "transient"]

type Fields = { readonly [name: string]: unknown }

class BadFrame extends Error {}

export function parseAgentFrame(text: string): ParsedFrame {
  let fields: unknown
  try {
    fields = JSON.parse(text)
  } catch {
    return { kind: "bad", problem: "a frame must be JSON" }
  }
  if (typeof fields !== "object" || fields === null || Array.isArray(fields))
    return { kind: "bad", problem: "a frame must be a JSON object" }
  const { kind } = fields as Fields
  if (typeof kind !== "string" || kind.length > LONGEST_NAME)
    return { kind: "bad", problem: `kind must be a text of at most ${LONGEST_NAME} characters` }
  try {
    const frame = frameOf(kind, fields as Fields)
    return frame === null ? { kind: "unknown", name: kind } : { kind: "frame", frame }
  } catch (error) {
    if (error instanceof BadFrame) return { kind: "bad", problem: `${kind}: ${error.message}` }
    throw error
  }
}

function frameOf(kind: string, fields: Fields): AgentFrame | null {
  switch (kind) {
    case "hello":
      return {
        kind,
        agent: matching(fields, "agent", AGENT_NAME),
        // Shown to people by programs that may not escape it.
        version: excerpt(Buffer.from(textOf(fields, "version", LONGEST_NAME))),
        credit: fields.credit === undefined ? MOST_CREDIT : wholeOf(fields, "credit", 0, MOST_CREDIT),
      }
    case "ack":
      return ackOf(fields)
    case "working":
      return { kind, id: textOf(fields, "id", LONGEST_ID), token: textOf(fields, "token", LONGEST_ID) }
    case "credit":
      return { kind, n: wholeOf(fields, "n", 0, MOST_CREDIT) }
    case "drain":
      return { kind }
    default:
      return null
  }
}

function ackOf(fields: Fields): AckFrame {
  return {
    kind: "ack",
    id: textOf(fields, "id", LONGEST_ID),
    attempt: wholeOf(fields, "attempt", 1, Number.MAX_SAFE_INTEGER),
    token: textOf(fields, "token", LONGEST_ID),
    result: resultOf(fields),
    status: optional(fields, "status", () => wholeOf(fields, "status", 100, 999)),
    error: optional(fields, "error", () => textOf(fields, "error", LONGEST_ERROR)),
    // A local program may name any time: the policy caps it.
    retryAfter: optional(fields, "retryAfter", () =>
      wholeOf(fields, "retryAfter", 0, Number.MAX_SAFE_INTEGER),
    ),
    response: optional(fields, "response", () => responseOf(fields.response)),
  }
}

function resultOf({ result }: Fields): AckResult {
  if (!RESULTS.includes(result as AckResult)) throw new BadFrame(`result must be ${RESULTS.join(", ")}`)
  return result as AckResult
}

function responseOf(given: unknown): AckFrame["response"] {
  if (typeof given !== "object" || given === null) throw new BadFrame("response must be an object")
  const fields = given as Fields
  const truncated = fields.truncated === true
  // Base64 is a third longer.
  const longest = MOST_RESPONSE_BYTES * 2
  const encoded: EncodedBody =
    fields.base64 === undefined
      ? { body: textOf(fields, "body", longest) }
      : { base64: textOf(fields, "base64", longest) }
  return { ...encoded, truncated }
}

function optional<T>(fields: Fields, name: string, read: () => T): T | null {
  return fields[name] === undefined || fields[name] === null ? null : read()
}

function textOf(fields: Fields, name: string, longest: number): string {
  const value = fields[name]
  if (typeof value !== "string" || value.length > longest)
    throw new BadFrame(`${name} must be a text of at most ${longest} characters`)
  return value
}

function matching(fields: Fields, name: string, pattern: RegExp): string {
  const value = textOf(fields, name, LONGEST_NAME)
  if (!pattern.test(value)) throw new BadFrame(`${name} must match ${pattern.source}`)
  return value
}

function wholeOf(fields: Fields, name: string, least: number, most: number): number {
  const value = fields[name]
  if (typeof value !== "number" || !Number.isInteger(value) || value < least || value > most)
    throw new BadFrame(`${name} must be a whole number from ${least} to ${most}`)
  return value
}

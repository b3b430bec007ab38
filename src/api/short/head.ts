/** The head of a request that sends a message, if it is written as most are. Whatever else it may be is null here, and the HTTP server's. */
import { HEADER_NAME, NOT_IN_A_HEADER } from "../../core/header.ts"
import { PREFIX } from "../context.ts"

export interface Head {
  /** As it stands in the path. */
  readonly app: string
  readonly authorization: string
  readonly idempotencyKey: string | undefined
  /** As the client would have it. */
  readonly requestId: string | undefined
  /** Where the body begins, and behind its end. */
  readonly bodyFrom: number
  readonly bodyTo: number
}

const REQUEST_LINE = new RegExp(`^POST ${PREFIX}/app/([\\w.-]{1,256})/msg HTTP/1\\.1$`)
const JSON_BODY = /^application\/json(?:; ?charset=utf-8)?$/i
const LENGTH = /^\d{1,9}$/
const END = Buffer.from("\r\n\r\n")
/** No longer head is looked at. */
const MOST_BYTES = 8192
const MOST_FIELDS = 64

/** What is asked of a header. */
class Fields {
  authorization: string | undefined
  connection: string | undefined
  contentLength: string | undefined
  contentType: string | undefined
  host: string | undefined
  idempotencyKey: string | undefined
  requestId: string | undefined
}

/** Null for those that change how the rest is to be read, or what becomes of the connection. All others are of no account. */
const MEANINGS = new Map<string, keyof Fields | null>([
  ["authorization", "authorization"],
  ["connection", "connection"],
  ["content-length", "contentLength"],
  ["content-type", "contentType"],
  ["host", "host"],
  ["idempotency-key", "idempotencyKey"],
  ["svix-req-id", "requestId"],
  ["content-encoding", null],
  ["expect", null],
  ["http2-settings", null],
  ["keep-alive", null],
  ["proxy-connection", null],
  ["te", null],
  ["trailer", null],
  ["transfer-encoding", null],
  ["upgrade", null],
])

export function readHead(bytes: Buffer): Head | null {
  const end = bytes.indexOf(END)
  if (end === -1 || end + END.length > MOST_BYTES) return null
  // One character for each byte.
  const text = bytes.toString("latin1", 0, end + 2)
  const endOfFirst = text.indexOf("\r\n")
  const app = REQUEST_LINE.exec(text.slice(0, endOfFirst))?.[1]
  if (app === undefined) return null
  const fields = readFields(text, endOfFirst + 2)
  if (fields === null || fields.host === undefined || fields.authorization === undefined) return null
  const { authorization, idempotencyKey, requestId, connection = "keep-alive" } = fields
  const { contentLength = "", contentType = "" } = fields
  if (
    connection.toLowerCase() !== "keep-alive" ||
    !LENGTH.test(contentLength) ||
    !JSON_BODY.test(contentType)
  )
    return null
  const bodyFrom = end + END.length
  return {
    app: copied(app),
    authorization: copied(authorization),
    idempotencyKey: idempotencyKey && copied(idempotencyKey),
    requestId: requestId && copied(requestId),
    bodyFrom,
    bodyTo: bodyFrom + Number(contentLength),
  }
}

/** A part of a text keeps all of it in memory, and names and keys are remembered. */
function copied(text: string): string {
  return Buffer.from(text, "latin1").toString("latin1")
}

/** Null for what two readers could read differently, what is not understood, and what stands there twice. */
function readFields(text: string, from: number): Fields | null {
  const fields = new Fields()
  let count = 0
  for (let at = from; at < text.length; ) {
    const next = text.indexOf("\r\n", at)
    const line = text.slice(at, next)
    at = next + 2
    const colon = line.indexOf(":")
    const name = line.slice(0, colon).toLowerCase()
    if (++count > MOST_FIELDS || colon === -1 || !HEADER_NAME.test(name) || NOT_IN_A_HEADER.test(line))
      return null
    const field = MEANINGS.get(name)
    if (field === undefined) continue
    if (field === null || fields[field] !== undefined) return null
    fields[field] = withoutSpace(line, colon + 1)
  }
  return fields
}

/** Spaces and tabs alone: `trim` would take more, such as the byte A0, in which many letters of UTF-8 end. */
function withoutSpace(line: string, start: number): string {
  let from = start
  let to = line.length
  while (from < to && isSpace(line.charCodeAt(from))) from++
  while (to > from && isSpace(line.charCodeAt(to - 1))) to--
  return line.slice(from, to)
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09
}

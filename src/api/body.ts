/** Parses request bodies: JSON of bounded depth, without `__proto__`. */
import { isAscii } from "node:buffer"
import type { FastifyRequest } from "fastify"
import { describe } from "../core/errors.ts"
import type { Api } from "./context.ts"
import { ApiError, unsupportedMedia } from "./errors.ts"
import { endOfText } from "./raw-field.ts"

declare module "fastify" {
  interface FastifyRequest {
    /** The unparsed body. */
    rawBody: Buffer | null
  }
}

/** The limit of Svix's server. */
const DEEPEST = 128
/** `"__proto__":`, also with escaped letters. */
const PROTO =
  /"(?:_|\\u005[Ff]){2}(?:p|\\u0070)(?:r|\\u0072)(?:o|\\u006[Ff])(?:t|\\u0074)(?:o|\\u006[Ff])(?:_|\\u005[Ff]){2}"\s*:/

/** Ten times as fast as the pattern, and false for most bodies. */
function mayHaveProto(text: string): boolean {
  return text.includes("__proto__") || text.includes("\\u")
}

const UTF8 = new TextDecoder("utf-8", { fatal: true })

export function readBodies(app: Api): void {
  app.decorateRequest("rawBody", null)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(
    "application/json",
    { parseAs: "buffer" },
    (request: FastifyRequest, bytes: Buffer, done) => {
      const encoding = request.headers["content-encoding"]
      if (encoding !== undefined && encoding !== "identity")
        return done(unsupportedMedia(`the body must be sent as it is, not as ${encoding}`))
      request.rawBody = bytes
      let body: unknown
      try {
        body = readJson(bytes)
      } catch (error) {
        return done(error as Error)
      }
      done(null, body)
    },
  )
  // Go's client sends neither type nor length with an empty body.
  app.addContentTypeParser("*", { parseAs: "buffer" }, (request: FastifyRequest, bytes: Buffer, done) => {
    const hasNone = request.headers["content-type"] === undefined && bytes.length === 0
    if (hasNone) return done(null)
    done(unsupportedMedia())
  })
}

/** Undefined for an empty body. */
export function readJson(bytes: Buffer): unknown {
  return bytes.length === 0 ? undefined : parseJson(bytes)
}

export function parseJson(bytes: Buffer): unknown {
  if (isDeeperThan(DEEPEST, bytes)) throw broken(`nests deeper than ${DEEPEST} levels`)
  let text: string
  try {
    text = isAscii(bytes) ? bytes.toString("latin1") : UTF8.decode(bytes)
  } catch {
    throw broken("is not UTF-8")
  }
  if (mayHaveProto(text) && PROTO.test(text)) throw broken("must not have a field named __proto__")
  try {
    return JSON.parse(text)
  } catch (error) {
    throw broken(`is not JSON: ${describe(error)}`)
  }
}

function broken(msg: string): ApiError {
  return ApiError.invalidAt(["body"], msg, "value_error.jsondecode")
}

const [QUOTE, OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = Buffer.from('"[]{}')

/** JSON.parse accepts any depth; recursive code over its result would overflow the stack. */
function isDeeperThan(deepest: number, bytes: Buffer): boolean {
  if (bytes.length < 2 * deepest) return false
  let depth = 0
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]
    if (byte === QUOTE) i = endOfText(bytes, i) - 1
    else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      if (++depth > deepest) return true
    } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth--
  }
  return false
}

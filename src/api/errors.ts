/** Error responses in Svix's shapes: `{code, detail}`, or a list of problems for invalid input. */
import type { FastifyError, FastifyReply, FastifyRequest } from "fastify"
import { type ErrorCode, PosthornError } from "../core/errors.ts"
import type { Logger } from "../observe/log.ts"

export interface Problem {
  /** Begins with body, query, path or header. */
  readonly loc: readonly string[]
  readonly msg: string
  readonly type: string
}

/** An error response. */
export class ApiError extends Error {
  readonly status: number
  readonly body: { readonly code: string; readonly detail: string } | { readonly detail: readonly Problem[] }
  readonly retryAfterSeconds: number | null

  constructor(status: number, body: ApiError["body"], retryAfterSeconds: number | null = null) {
    super(typeof body.detail === "string" ? body.detail : "the input does not fit")
    this.status = status
    this.body = body
    this.retryAfterSeconds = retryAfterSeconds
  }

  static of(status: number, code: string, detail: string, retryAfterSeconds?: number): ApiError {
    return new ApiError(status, { code, detail }, retryAfterSeconds)
  }

  static invalid(problems: readonly Problem[]): ApiError {
    return new ApiError(422, { detail: problems })
  }

  static invalidAt(loc: readonly string[], msg: string, type = "value_error"): ApiError {
    return ApiError.invalid([{ loc, msg, type }])
  }
}

/** The parts of a request that its error response refers to. */
export type RequestParts = Pick<FastifyRequest, "id" | "params" | "query" | "body">

const LIBRARY: { readonly [C in ErrorCode]?: (error: PosthornError, request: RequestParts) => ApiError } = {
  invalid_input: (error, request) => ApiError.invalidAt(locationOf(error.field, request), error.message),
  not_found: (error) => ApiError.of(404, "not_found", `Entity not found: ${error.message}`),
  conflict: (error) => ApiError.of(409, "conflict", error.message),
  limit_reached: (error) => ApiError.of(400, "limit_reached", error.message),
  payload_too_large: (error) => ApiError.of(413, "payload_too_large", error.message),
  payload_gone: (error) => ApiError.of(400, "missing_payload", error.message),
  closed: () => ApiError.of(503, "closing", "the server is stopping; try again elsewhere, or later", 1),
  store_in_use: () => ApiError.of(503, "store_unavailable", "the store is in use; try again", 1),
  store_unavailable: () => ApiError.of(503, "store_unavailable", "the store cannot be reached; try again", 1),
  // Only the log has the new location: the caller may be a customer.
  store_moved: () =>
    ApiError.of(
      503,
      "store_moved",
      "the store was moved to another database, and nothing was accepted; the log of the server says where",
      30,
    ),
  store_failed: () =>
    ApiError.of(
      503,
      "store_failed",
      "the store failed and may have done what was asked; repeat it with the same Idempotency-Key after a restart",
      5,
    ),
  store_full: () => ApiError.of(503, "store_full", "the store is full; nothing was accepted", 30),
}

/** Room in a body for the fields around its payload. */
export const ENVELOPE_BYTES = 65_536

/** Fastify's errors, by code. */
const FRAMEWORK: { readonly [code: string]: (error: FastifyError, request: FastifyRequest) => ApiError } = {
  FST_ERR_CTP_BODY_TOO_LARGE: (_, { routeOptions: { bodyLimit = 0 } }) => {
    const detail = `the body is larger than ${bodyLimit} bytes`
    const shares =
      `: ${bodyLimit - ENVELOPE_BYTES} for payloads (the setting maxPayloadBytes, ` +
      `POSTHORN_MAX_PAYLOAD_BYTES; all messages of a batch share them) and ${ENVELOPE_BYTES} for the rest`
    return ApiError.of(413, "payload_too_large", bodyLimit > ENVELOPE_BYTES ? detail + shares : detail)
  },
  FST_ERR_MAX_PARAM_LENGTH: () => ApiError.of(404, "not_found", "Entity not found: no name is that long"),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: () => unsupportedMedia(),
}

export function unsupportedMedia(detail = "the content type must be application/json"): ApiError {
  return ApiError.of(415, "unsupported_media_type", detail)
}

function toApiError(error: Error, request: FastifyRequest): ApiError {
  if (error instanceof ApiError) return error
  const { code, statusCode } = error as FastifyError
  const known = FRAMEWORK[code]
  if (known !== undefined) return known(error as FastifyError, request)
  const isClients = statusCode !== undefined && statusCode >= 400 && statusCode < 500
  return isClients ? ApiError.of(statusCode, "generic_error", error.message) : errorResponse(error, request)
}

/** For errors that are not Fastify's. */
export function errorResponse(error: unknown, request: RequestParts): ApiError {
  if (error instanceof ApiError) return error
  if (error instanceof PosthornError) return LIBRARY[error.code]?.(error, request) ?? internal(request)
  return internal(request)
}

/** The cause is only in the log. */
function internal(request: RequestParts): ApiError {
  return ApiError.of(
    500,
    "server_error",
    `an internal error occurred; the server's log has it under request ${request.id}`,
  )
}

export function handleError(error: Error, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const answer = toApiError(error, request)
  logFailure(error, answer, request.log)
  // Fastify would close the connection, and a client that still sends would not see the response.
  if ((error as FastifyError).code === "FST_ERR_CTP_BODY_TOO_LARGE") void reply.removeHeader("connection")
  return sendError(answer, reply)
}

export function logFailure(error: unknown, { status }: ApiError, log: Pick<Logger, "error" | "warn">): void {
  if (status === 500) log.error({ err: error }, "a request failed")
  else if (status > 500) log.warn({ err: error }, "a request was refused")
}

export function sendError(answer: ApiError, reply: FastifyReply): FastifyReply {
  if (answer.retryAfterSeconds !== null) void reply.header("retry-after", answer.retryAfterSeconds)
  return reply.code(answer.status).send(answer.body)
}

/** Fields of the library that have another name in the API. */
const ALIASES: { readonly [field: string]: readonly string[] } = {
  message: ["msg_id"],
  secret: ["key"],
  maxAttempts: ["max_attempts"],
  maxAge: ["max_age"],
}

function locationOf(field: string | undefined, request: RequestParts): string[] {
  const path = (field ?? "").split(/[.[\]]+/).filter((part) => part !== "")
  const [root = "", ...rest] = path
  if (root === "cursor") return ["query", "iterator"]
  if (root === "idempotencyKey") return ["header", "idempotency-key"]
  for (const [name, part] of Object.entries({
    path: request.params,
    query: request.query,
    body: request.body,
  })) {
    const field = [root, `${root}_id`, ...(ALIASES[root] ?? [])].find((field) =>
      Object.hasOwn((part ?? {}) as object, field),
    )
    if (field !== undefined) return [name, field, ...rest]
  }
  // The body of a policy's PUT is the policy.
  if (root === "policy" && request.body !== undefined) return ["body", ...rest]
  return [request.body === undefined ? "query" : "body", ...path]
}

/** The HTTP API, as this page's session may use it. */
import { signal } from "@preact/signals"
import { type ProblemBody, sentenceOf } from "./problem.ts"

export type Query = {
  readonly [name: string]: string | number | boolean | readonly string[] | null | undefined
}

/** An error response, or no response at all (status 0). Its message is a sentence for the reader. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string

  constructor(status: number, body: ProblemBody | null) {
    super(sentenceOf(body) ?? `The server answered with status ${status}.`)
    this.status = status
    this.code = body?.code ?? ""
  }
}

export type Page = "dashboard" | "portal"
export type Reachability = "reachable" | "unreachable"

/** Set by the entry point. */
export const page = signal<Page>("dashboard")
/** Of an embedded portal, where browsers send no cookies. Never stored. */
export const bearer = signal<string | null>(null)
/** Whether the last request reached the server. */
export const reachability = signal<Reachability>("reachable")
/** Set when a request was refused because the session has ended. */
export const sessionEnded = signal<string | null>(null)

export function authHeaders(): { [name: string]: string } {
  return bearer.value === null
    ? { "posthorn-session": page.value }
    : { authorization: `Bearer ${bearer.value}` }
}

export function pathWith(path: string, query: Query = {}): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    value === null || value === undefined || value === ""
      ? []
      : [value].flat().map((one) => [name, String(one)] as [string, string]),
  )
  return pairs.length === 0 ? path : `${path}?${new URLSearchParams(pairs)}`
}

async function call<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  let response: Response
  let text: string
  try {
    response = await fetch(`/api/v1${path}`, {
      method,
      headers: {
        ...authHeaders(),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
      credentials: bearer.value === null ? "same-origin" : "omit",
    })
    text = await response.text()
  } catch (error) {
    if (signal?.aborted) throw error
    reachability.value = "unreachable"
    throw new ApiError(0, { detail: "The server cannot be reached. Check that it runs, and your network." })
  }
  reachability.value = "reachable"
  const isJson = response.headers.get("content-type")?.includes("json") === true && text !== ""
  const parsed = isJson ? parseExactly(text) : null
  if (response.ok) return parsed as T
  const error = new ApiError(response.status, parsed as ProblemBody | null)
  if (response.status === 401) sessionEnded.value = error.message
  throw error
}

export const api = {
  get: <T>(path: string, query?: Query, signal?: AbortSignal) =>
    call<T>("GET", pathWith(path, query), undefined, signal),
  post: <T>(path: string, body: unknown = {}) => call<T>("POST", path, body),
  put: <T>(path: string, body: unknown) => call<T>("PUT", path, body),
  patch: <T>(path: string, body: unknown) => call<T>("PATCH", path, body),
  delete: (path: string, query?: Query) => call<void>("DELETE", pathWith(path, query)),
}

/** A path with its parameters encoded: `pathTo("/app", id)`. */
export function pathTo(...parts: readonly string[]): string {
  return parts.map((part) => (part.startsWith("/") ? part : `/${encodeURIComponent(part)}`)).join("")
}

interface SourceContext {
  readonly source?: string
}
declare global {
  interface JSON {
    rawJSON?(text: string): object
  }
}

/** Numbers that JavaScript would round keep their text: `JSON.stringify` writes it again. Older browsers round them. */
export function parseExactly(text: string): unknown {
  if (JSON.rawJSON === undefined) return JSON.parse(text)
  const keep = (_key: string, value: unknown, context?: SourceContext) =>
    typeof value === "number" && context?.source !== undefined && String(value) !== context.source
      ? JSON.rawJSON!(context.source)
      : value
  return JSON.parse(text, keep as (key: string, value: unknown) => unknown)
}

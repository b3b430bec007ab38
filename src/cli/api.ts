/** The HTTP API for commands: paths, responses, and errors in the terms of the command line. */

import { printable } from "../core/text.ts"
import type { ApiResponse, Call, Client, StreamResponse } from "./client.ts"

/** An error response of the API; the exit code is 1. */
export class ApiFailure extends Error {
  readonly status: number

  constructor(status: number, sentence: string) {
    super(sentence)
    this.status = status
  }
}

/** A path with its ids escaped. */
export function path(pieces: TemplateStringsArray, ...ids: readonly (string | undefined)[]): string {
  return pieces.map((piece, i) => piece + (i < ids.length ? encodeURIComponent(ids[i] ?? "") : "")).join("")
}

export class Api {
  readonly #client: Client
  readonly #names: ReadonlyMap<string, string>

  /** `names` maps the API's fields to the flags that set them. */
  constructor(client: Client, names: ReadonlyMap<string, string> = new Map()) {
    this.#client = client
    this.#names = names
  }

  get<T>(route: string, query: Call["query"] = {}): Promise<T> {
    return this.send("GET", route, { query })
  }

  post<T>(route: string, body?: unknown): Promise<T> {
    return this.send("POST", route, { body })
  }

  /** Throws an `ApiFailure` for an error response. */
  async send<T>(method: string, route: string, call: Call = {}): Promise<T> {
    const { status, body } = await this.try(method, route, call)
    if (status >= 400) throw new ApiFailure(status, sentenceOf(status, body, this.#names))
    return body as T
  }

  /** Throws an `ApiFailure` for an error response. */
  async stream(route: string, call: Call, signal: AbortSignal): Promise<StreamResponse["chunks"]> {
    const { status, body, chunks } = await this.#client.stream(route, call, signal)
    if (status >= 400) throw new ApiFailure(status, sentenceOf(status, body, this.#names))
    return chunks
  }

  /** Returns error responses too. */
  try(method: string, route: string, call: Call = {}): Promise<ApiResponse> {
    return this.#client.call(method, route, call)
  }

  /** Runs tasks in this process if no server does. */
  async runTasks(): Promise<void> {
    await this.#client.runTasks?.()
  }
}

interface Problem {
  readonly loc: readonly string[]
  readonly msg: string
}

export function sentenceOf(status: number, body: unknown, names: ReadonlyMap<string, string>): string {
  const { detail } = (body ?? {}) as { readonly detail?: string | readonly Problem[] }
  if (typeof detail === "string") {
    const said = printable(detail.replace(/^Entity not found: /, ""))
    return status === 401
      ? `the server does not take this key: ${said}; check --key or POSTHORN_API_KEY`
      : said
  }
  if (!Array.isArray(detail)) return `the server answered ${status} and did not say why`
  const problems = (detail as readonly Problem[]).map((problem) => inOurWords(problem, names))
  return printable([...new Set(problems)].join("; "))
}

/** Some messages begin with the field's name, others do not. */
function inOurWords({ loc, msg }: Problem, names: ReadonlyMap<string, string>): string {
  const [, root = "", ...deeper] = loc
  const field = [root, ...deeper].join(".")
  const name = names.get(root) ?? field
  // The library's field `endpoint` is `endpoint_id` in the API.
  const own = [root, root.replace(/_id$/, "")].find((word) => word !== "" && msg.startsWith(`${word} `))
  if (own !== undefined) return (names.get(root) ?? root) + msg.slice(own.length)
  if (name === field && msg.startsWith(`${field} `)) return msg
  return [name, msg].filter((part) => part !== "").join(" ")
}

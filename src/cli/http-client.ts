/** A server's API over HTTP. */

import { networkProblem } from "../agent/network-error.ts"
import { parseExactly } from "../core/exact-json.ts"
import { printable } from "../core/text.ts"
import type { ApiResponse, Call, Client, StreamResponse } from "./client.ts"
import { queryText } from "./client.ts"
import { UsageError } from "./usage-error.ts"

const PATIENCE_MS = 60_000
const TRUST = "give its authority with NODE_EXTRA_CA_CERTS=FILE"
const NOT_THERE = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"])
const ADDRESS = "; does it run, and is --server (POSTHORN_SERVER) its address?"

export class HttpClient implements Client {
  readonly #base: string
  readonly #key: string | null

  constructor(server: string, key: string | null) {
    const url = URL.parse(server)
    if (url === null || !/^https?:$/.test(url.protocol))
      throw new UsageError(
        `the server must be a URL such as http://localhost:8071, not "${printable(server)}"`,
      )
    if (key !== null && !/^[\x21-\x7e]+$/.test(key))
      throw new UsageError("the key must be one word of visible ASCII characters, such as ph_…")
    this.#base = `${url.origin}${url.pathname.replace(/\/(api\/v1\/?)?$/, "")}`
    this.#key = key
  }

  async call(method: string, path: string, call: Call): Promise<ApiResponse> {
    const patience = AbortSignal.timeout(PATIENCE_MS)
    const signal = call.signal === undefined ? patience : AbortSignal.any([patience, call.signal])
    const response = await this.#request(method, path, call, signal)
    return { status: response.status, body: this.#read(response, await response.text()) }
  }

  async stream(path: string, call: Call, signal: AbortSignal): Promise<StreamResponse> {
    const response = await this.#request("GET", path, call, signal)
    const { status, body } = response
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream")
    if (isStream && body !== null) return { status, body: null, chunks: body }
    const read = this.#read(response, await response.text())
    if (status < 400) throw new Error(`${this.#base} is not a Posthorn server: it answered without a stream`)
    return { status, body: read, chunks: nothing() }
  }

  async #request(
    method: string,
    path: string,
    { query, body, headers = {} }: Call,
    signal: AbortSignal,
  ): Promise<Response> {
    const response = await this.#fetch(`${this.#base}/api/v1${path}${queryText(query)}`, {
      method,
      headers: {
        ...(this.#key === null ? {} : { authorization: `Bearer ${this.#key}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      redirect: "manual",
      signal,
    })
    if (response.status === 401 && this.#key === null)
      throw new UsageError("the server wants a key: give it with --key or POSTHORN_API_KEY")
    return response
  }

  async #fetch(url: string, request: RequestInit): Promise<Response> {
    try {
      return await fetch(url, request)
    } catch (error) {
      const { name, cause = error } = error as Error
      if (name === "TimeoutError") throw new Error(`the server ${this.#base} did not answer in time`)
      const { code = "" } = cause as NodeJS.ErrnoException
      const advice = NOT_THERE.has(code) ? ADDRESS : ""
      throw new Error(`the server cannot be reached: ${networkProblem(cause, this.#base, TRUST)}${advice}`)
    }
  }

  #read({ status, headers }: Response, text: string): unknown {
    if (text === "" && status < 300) return null
    try {
      if (headers.get("content-type")?.startsWith("application/json")) return parseExactly(text)
    } catch {
      // Reported below.
    }
    throw new Error(`${this.#base} is not a Posthorn server: it answered ${status} without JSON`)
  }

  async close(): Promise<void> {}
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

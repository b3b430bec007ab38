/** A real server on a port of its own, on a store of its own, and a client that holds every answer to the OpenAPI document. */
import type { AddressInfo } from "node:net"
import { onTestFinished } from "vitest"
import type { Api, Routes } from "../../../src/api/context.ts"
import { createServer, type ServerSettings } from "../../../src/api/server.ts"
import { createLogger } from "../../../src/observe/log.ts"
import type { PosthornOptions } from "../../../src/options.ts"
import { openPosthorn, type Posthorn, type Replacements } from "../../../src/posthorn.ts"
import { freshGround } from "../../support/combination.ts"
import { LOOPBACK } from "../../support/harness.ts"
import { contractOf, fetchChecked } from "./checked.ts"
import type { Contract } from "./contract.ts"

export interface ApiServerOptions extends Partial<ServerSettings>, Replacements {
  readonly options?: Partial<PosthornOptions>
}

export interface CallOptions {
  /** Sent as JSON. */
  readonly body?: unknown
  /** Sent as it is. */
  readonly raw?: string | Uint8Array
  /** The admin's unless told; null sends none. */
  readonly key?: string | null
  readonly headers?: { readonly [name: string]: string }
}

export interface Answer {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for
  readonly body: any
  readonly text: string
  readonly headers: Headers
}

export class ApiServer {
  readonly app: Api
  readonly posthorn: Posthorn
  readonly url: string
  /** An admin's. */
  readonly key: string
  readonly #routes: readonly Routes[] | undefined

  private constructor(app: Api, posthorn: Posthorn, url: string, key: string, routes?: readonly Routes[]) {
    this.app = app
    this.posthorn = posthorn
    this.url = url
    this.key = key
    this.#routes = routes
  }

  /** Made when a test first asks for it: it takes as much CPU as the server. */
  get contract(): Promise<Contract> {
    return contractOf(this.posthorn, this.#routes)
  }

  static async start(given: ApiServerOptions = {}): Promise<ApiServer> {
    const { options = {}, clock, random, transport, wrapStore, instruments, ...settings } = given
    const ground = await freshGround({ migrated: true })
    const posthorn = await openPosthorn(
      { ...ground.options, logger: "silent", egress: LOOPBACK, closeTimeoutMs: 0, ...options },
      Object.fromEntries(
        Object.entries({ clock, random, transport, wrapStore, instruments }).filter(([, one]) => one),
      ),
    )
    const app = createServer(posthorn, {
      logger: createLogger("silent"),
      maxPayloadBytes: 1_048_576,
      maxRequests: 1000,
      closeTimeoutMs: 1000,
      ...settings,
    })
    onTestFinished(() => app.close())
    await app.listen({ port: 0, host: "127.0.0.1" })
    const { token } = await posthorn.keys.create({ name: "test", scope: "admin" })
    const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`
    return new ApiServer(app, posthorn, url, token, settings.routes)
  }

  /** The path is below /api/v1. */
  async call(method: string, path: string, options: CallOptions = {}): Promise<Answer> {
    const { body, raw, key = this.key, headers = {} } = options
    const response = await fetchChecked(this.contract)(`${this.url}/api/v1${path}`, {
      method,
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(body === undefined && raw === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined && raw === undefined ? {} : { body: raw ?? JSON.stringify(body) }),
    } as RequestInit)
    const text = await response.text()
    const { status } = response
    const isJson = response.headers.get("content-type")?.startsWith("application/json") && text !== ""
    return { status, text, headers: response.headers, body: isJson ? JSON.parse(text) : null }
  }
}

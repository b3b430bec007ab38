/** The API that a command uses: a server's over HTTP, or one in this process on a local store. */
import type { AbsentStore } from "./local-client.ts"
import { UsageError } from "./usage-error.ts"

export interface Call {
  readonly query?: { readonly [name: string]: unknown }
  /** Sent as JSON. */
  readonly body?: unknown
  readonly headers?: { readonly [name: string]: string }
  /** Ends the wait for a server's response. */
  readonly signal?: AbortSignal
}

export interface ApiResponse {
  readonly status: number
  /** Null when empty. */
  readonly body: unknown
}

/** A response that goes on. */
export interface StreamResponse {
  readonly status: number
  /** Of an error; null while the stream goes on. */
  readonly body: unknown
  readonly chunks: AsyncIterable<Uint8Array>
}

export interface Client {
  /** `path` is relative to /api/v1. */
  call(method: string, path: string, call: Call): Promise<ApiResponse>
  /** A GET whose response goes on until the signal. */
  stream(path: string, call: Call, signal: AbortSignal): Promise<StreamResponse>
  close(): Promise<void>
  /** Runs tasks in this process: no other process may have a local store open. */
  runTasks?(): Promise<void> | void
}

export type Environment = { readonly [name: string]: string | undefined }

export interface ConnectionFlags {
  readonly server?: unknown
  readonly key?: unknown
  readonly store?: unknown
  readonly config?: unknown
}

const nonEmpty = (value: unknown) => (typeof value === "string" && value.trim() !== "" ? value.trim() : null)

/** Loads only the client that is used: a command for a server need not load the engine. */
export async function openClient(
  flags: ConnectionFlags,
  environment: Environment,
  absentStore: AbsentStore,
): Promise<Client> {
  const store = nonEmpty(flags.store) ?? nonEmpty(flags.config)
  if (nonEmpty(flags.server) !== null && store !== null)
    throw new UsageError("--server and --store are two places to ask; give one of them")
  const server = nonEmpty(flags.server) ?? (store === null ? nonEmpty(environment.POSTHORN_SERVER) : null)
  if (server !== null) {
    const { HttpClient } = await import("./http-client.ts")
    return new HttpClient(server, nonEmpty(flags.key) ?? nonEmpty(environment.POSTHORN_API_KEY))
  }
  if (nonEmpty(flags.key) !== null)
    throw new UsageError("--key is for a server; say which with --server URL or POSTHORN_SERVER")
  const { openLocalClient } = await import("./local-client.ts")
  return openLocalClient(flags, absentStore)
}

/** Opened by the first call, so that an error in the command line is reported before a store is created. */
export function lazyClient(open: () => Promise<Client>): Client {
  let opened: Promise<Client> | null = null
  const client = () => {
    opened ??= open()
    return opened
  }
  return {
    call: async (method, path, call) => (await client()).call(method, path, call),
    stream: async (path, call, signal) => (await client()).stream(path, call, signal),
    runTasks: async () => (await client()).runTasks?.(),
    close: async () =>
      opened?.then(
        (one) => one.close(),
        () => {},
      ),
  }
}

export function queryText(query: Call["query"] = {}): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    for (const one of [value].flat())
      if (one !== undefined && one !== null) parameters.append(name, String(one))
  }
  const text = parameters.toString()
  return text === "" ? "" : `?${text}`
}

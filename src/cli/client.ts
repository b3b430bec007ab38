/** Who is asked: a server over HTTP, or a store on this machine. Both are spoken to in the same way. */
import type { AbsentStore } from "./local-client.ts"
import { UsageError } from "./usage-error.ts"

export interface Call {
  readonly query?: { readonly [name: string]: unknown }
  /** Sent as JSON. */
  readonly body?: unknown
  readonly headers?: { readonly [name: string]: string }
}

export interface ApiResponse {
  readonly status: number
  /** Null when there is none. */
  readonly body: unknown
}

export interface Client {
  /** The path is below /api/v1. */
  call(method: string, path: string, call: Call): Promise<ApiResponse>
  close(): Promise<void>
  /** Works off tasks in this process: a store on this machine may have nobody else who does. */
  runTasks?(): Promise<void> | void
}

export type Environment = { readonly [name: string]: string | undefined }

/** What decides who is asked. */
export interface ConnectionFlags {
  readonly server?: unknown
  readonly key?: unknown
  readonly store?: unknown
  readonly config?: unknown
}

const nonEmpty = (value: unknown) => (typeof value === "string" && value.trim() !== "" ? value.trim() : null)

/** Each is loaded only where it is the one: whoever asks a server does not wait for the engine. */
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

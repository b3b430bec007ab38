/** Who is asked: a server over HTTP, or a store on this machine. Both are spoken to in the same way. */
import type { Missing } from "./local-client.ts"
import { UsageError } from "./options.ts"

export interface Call {
  readonly query?: { readonly [name: string]: unknown }
  /** Sent as JSON. */
  readonly body?: unknown
  readonly headers?: { readonly [name: string]: string }
}

export interface Answer {
  readonly status: number
  /** Null when there is none. */
  readonly body: unknown
}

export interface Client {
  /** The path is below /api/v1. */
  call(method: string, path: string, call: Call): Promise<Answer>
  close(): Promise<void>
  /** Works off tasks in this process: a store on this machine may have nobody else who does. */
  workOff?(): Promise<void> | void
}

export type Environment = { readonly [name: string]: string | undefined }

/** What decides who is asked. */
export interface Whom {
  readonly server?: unknown
  readonly key?: unknown
  readonly store?: unknown
  readonly config?: unknown
}

const said = (value: unknown) => (typeof value === "string" && value.trim() !== "" ? value.trim() : null)

/** Each is loaded only where it is the one: whoever asks a server does not wait for the engine. */
export async function openClient(flags: Whom, environment: Environment, missing: Missing): Promise<Client> {
  const store = said(flags.store) ?? said(flags.config)
  if (said(flags.server) !== null && store !== null)
    throw new UsageError("--server and --store are two places to ask; give one of them")
  const server = said(flags.server) ?? (store === null ? said(environment.POSTHORN_SERVER) : null)
  if (server !== null) {
    const { HttpClient } = await import("./http-client.ts")
    return new HttpClient(server, said(flags.key) ?? said(environment.POSTHORN_API_KEY))
  }
  if (said(flags.key) !== null)
    throw new UsageError("--key is for a server; say which with --server URL or POSTHORN_SERVER")
  const { openLocalClient } = await import("./local-client.ts")
  return openLocalClient(flags, missing)
}

/** Opened by the first call: what is wrong with a command line is said before a store is made for it. */
export function lazily(open: () => Promise<Client>): Client {
  let opened: Promise<Client> | null = null
  const client = () => {
    opened ??= open()
    return opened
  }
  return {
    call: async (method, path, call) => (await client()).call(method, path, call),
    workOff: async () => (await client()).workOff?.(),
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

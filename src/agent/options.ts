/** Options of `connectAgent`: validated once, with their defaults. */
import { X509Certificate } from "node:crypto"
import { invalid } from "../core/errors.ts"
import { refuseUnknown, requireObject, wholeNumber } from "../core/input.ts"
import { AGENT_NAME, MOST_CREDIT, type SettledFrame } from "../core/relay-protocol.ts"
import { type Logger, type LogLevel, parseLogger } from "../observe/log.ts"
import type { AgentEvent, AgentHandler } from "./event.ts"
import type { AgentOutcome } from "./outcome.ts"
import { relayUrl } from "./server-url.ts"

export interface AgentConnected {
  readonly session: string
  /** Goes up with each connection of this name. */
  readonly epoch: number
}

/** A connection was lost, or could not be made. */
export interface AgentDisconnected {
  /** A sentence without its full stop. */
  readonly reason: string
  /** Until the next try. Null: there is none. */
  readonly retryInMs: number | null
}

export interface AgentHandled {
  readonly event: AgentEvent
  readonly outcome: AgentOutcome
  readonly durationMs: number
  /** The handler did not run: the server had not confirmed the outcome of an earlier run. */
  readonly isRepeated: boolean
}

export interface AgentSettled {
  readonly deliveryId: string
  readonly attempt: number
  /** Of the delivery; null: the outcome did not count, since somebody else had changed the delivery. */
  readonly status: SettledFrame["status"]
}

/** Either `handle` or `forward`. */
export interface AgentOptions {
  /** `wss://hooks.example.com` or `https://…`, with a path if the server is behind one. */
  server: string
  /** A key with the scope `agent`. */
  key: string
  /** The NAME of the endpoint's URL, `relay://NAME`. */
  name: string
  /** The most events at once, from 1 to 16. 16. */
  credit?: number
  handle?: AgentHandler
  /** `http://localhost:3000`: the URL of a local program, which gets the requests as they came. */
  forward?: string
  /** Certificates of the authority that signed the server's, as PEM, instead of those that Node trusts. */
  ca?: string
  /** The largest frame that the server may send. 8 388 608: enough for payloads of 1 MiB. */
  maxFrameBytes?: number
  /** How long `close` waits for events in flight. 30 000. */
  closeTimeoutMs?: number
  /** A pino logger, or the level of a logger that writes to standard error. `warn`. */
  logger?: Logger | LogLevel
  onConnected?: (connected: AgentConnected) => void
  onDisconnected?: (disconnected: AgentDisconnected) => void
  onHandled?: (handled: AgentHandled) => void
  onSettled?: (settled: AgentSettled) => void
}

export type AgentCallbacks = Pick<AgentOptions, "onConnected" | "onDisconnected" | "onHandled" | "onSettled">

export interface AgentSettings {
  readonly url: URL
  readonly key: string
  readonly name: string
  readonly credit: number
  /** A handler, or the URL that is forwarded to. */
  readonly handler: AgentHandler | URL
  readonly ca: string | null
  readonly maxFrameBytes: number
  readonly closeTimeoutMs: number
  readonly logger: Logger
  readonly callbacks: AgentCallbacks
}

const CALLBACKS = ["onConnected", "onDisconnected", "onHandled", "onSettled"] as const
const KNOWN = ["server", "key", "name", "credit", "handle", "forward", "ca"].concat(
  ["maxFrameBytes", "closeTimeoutMs", "logger"],
  CALLBACKS,
)
/** A payload of 1 MiB in any encoding, with its headers. */
const FRAME_BYTES = 8_388_608
/** The largest payload that a server can be set to take, as base64. */
const MOST_FRAME_BYTES = 100_663_296
const MOST_CLOSE_MS = 3_600_000

export function parseOptions(options: AgentOptions): AgentSettings {
  requireObject(options, "options")
  refuseUnknown(options, KNOWN, "options")
  const { key, name, credit, ca, maxFrameBytes, closeTimeoutMs, logger } = options
  if (typeof key !== "string" || !/^[\x21-\x7e]+$/.test(key))
    throw invalid("key", "must be one word of visible ASCII characters, such as ph_…")
  if (typeof name !== "string" || !AGENT_NAME.test(name))
    throw invalid("name", "must be 1 to 63 characters of a-z, 0-9 and -: the NAME of relay://NAME")
  if (ca !== undefined && !isCertificate(ca)) throw invalid("ca", "must be certificates as PEM")
  for (const field of CALLBACKS)
    if (options[field] !== undefined && typeof options[field] !== "function")
      throw invalid(field, "must be a function")
  return {
    url: relayUrl(options.server),
    key,
    name,
    credit: credit === undefined ? MOST_CREDIT : wholeNumber(credit, "credit", 1, MOST_CREDIT),
    handler: parseHandler(options),
    ca: ca ?? null,
    maxFrameBytes: wholeNumber(maxFrameBytes ?? FRAME_BYTES, "maxFrameBytes", 65_536, MOST_FRAME_BYTES),
    closeTimeoutMs: wholeNumber(closeTimeoutMs ?? 30_000, "closeTimeoutMs", 0, MOST_CLOSE_MS),
    logger: parseLogger(logger ?? "warn"),
    callbacks: options,
  }
}

function parseHandler({ handle, forward }: AgentOptions): AgentHandler | URL {
  if ((handle === undefined) === (forward === undefined))
    throw invalid("handle", "or forward must be given, and not both")
  if (forward === undefined) {
    if (typeof handle === "function") return handle
    throw invalid("handle", "must be a function")
  }
  return forwardUrl(forward)
}

/** Of a local program. */
export function forwardUrl(forward: string): URL {
  const url = URL.parse(forward)
  const isPlain = url !== null && url.username === "" && url.search === "" && url.hash === ""
  if (isPlain && /^https?:$/.test(url.protocol)) return url
  throw invalid("forward", "must be a URL such as http://localhost:3000, without a user or a query")
}

function isCertificate(pem: unknown): boolean {
  try {
    new X509Certificate(pem as string)
    return typeof pem === "string"
  } catch {
    return false
  }
}

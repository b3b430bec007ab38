/** The cases that the client runs against every server: the columns of the table. Each returns its cell, or throws. */
import { subscribe } from "node:diagnostics_channel"
import { setTimeout as wait } from "node:timers/promises"
import type { HttpTransport } from "../../src/transport/http.ts"
import type { TransportResult } from "../../src/transport/transport.ts"
import { FaultProxy } from "../support/fault-proxy.ts"
import type { Place, ServerKind } from "./servers.ts"

export interface Subject {
  readonly kind: ServerKind
  readonly place: Place
  readonly transport: HttpTransport
  /** The authority of the server's certificate. */
  readonly ca: string
}

export type Case = (subject: Subject) => Promise<string>

const NOT_APPLICABLE = "–"
const OK = "✓"
const MIB = 1024 * 1024
const TIMEOUT_MS = 20_000

let sockets = 0
subscribe("net.client.socket", () => sockets++)

/** How many sockets were opened meanwhile. The cases of one process run one after the other. */
async function socketsFor(work: () => Promise<void>): Promise<number> {
  const before = sockets
  await work()
  return sockets - before
}

interface Request {
  readonly path: string
  readonly bytes?: number
  readonly endpointId?: string
  readonly host?: string
  readonly isSecure?: boolean
}

function post({ transport, place, ca }: Subject, request: Request): Promise<TransportResult> {
  const { path, bytes = 5, endpointId = "ep", host = "127.0.0.1", isSecure = false } = request
  const origin = isSecure ? `https://${host}:${place.tlsPort}` : `http://${host}:${place.port}`
  return transport.send({
    ...{ endpointId: `${endpointId} ${origin}`, version: 1, url: origin + path, headers: {} },
    ...{ body: Buffer.alloc(bytes, "x"), timeoutMs: TIMEOUT_MS, connectTimeoutMs: TIMEOUT_MS },
    tls: isSecure ? { ca } : {},
  })
}

/** A connection is free for the next request in the turn after its response. */
const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

async function expectResponse(subject: Subject, request: Request, status: number, body: string) {
  const result = await post(subject, request)
  const { outcome, responseBody, detail } = result
  if (outcome.kind !== "response") throw new Error(`${JSON.stringify(outcome)} ${detail}`)
  const text = String(responseBody ?? "")
  if (outcome.status !== status || text !== body)
    throw new Error(`expected ${status} ${JSON.stringify(body)}, got ${outcome.status} ${text.slice(0, 200)}`)
  await nextTurn()
  return result
}

const simple =
  (request: Request, status: number, body: string): Case =>
  async (subject) => {
    await expectResponse(subject, request, status, body)
    return OK
  }

const REQUESTS = 20

/** Says whether the server keeps connections open. */
const keepAlive: Case = async (subject) => {
  const opened = await socketsFor(async () => {
    for (let i = 0; i < REQUESTS; i++) {
      const request = { path: "/echo", endpointId: "keep-alive" }
      await expectResponse(subject, request, 200, "5")
    }
  })
  if (opened === 1) return "1 connection"
  return opened === REQUESTS ? "server closes" : `${opened} connections`
}

const connectionClose: Case = async (subject) => {
  for (let i = 0; i < 3; i++) {
    const { outcome } = await post(subject, { path: "/close", endpointId: "close" })
    if (outcome.kind !== "response" || outcome.status !== 200) throw new Error(JSON.stringify(outcome))
    await nextTurn()
  }
  return OK
}

/** The server responds before it has read 4 MiB. Its close may reset the connection before the response can be read: that is TCP. */
const earlyError: Case = async (subject) => {
  const { outcome, detail } = await post(subject, { path: "/early", bytes: 4 * MIB, endpointId: "early" })
  if (outcome.kind === "response" && outcome.status === 413) return "413"
  if (outcome.kind === "failure" && outcome.cause === "connection_reset") return "reset"
  throw new Error(`${JSON.stringify(outcome)} ${detail}`)
}

const truncated: Case = async (subject) => {
  const { responseStatus, responseBody, responseTruncated } = await post(subject, { path: "/large" })
  if (responseStatus !== 200 || !responseTruncated || responseBody?.length !== 65_536)
    throw new Error(`${responseStatus}, ${responseBody?.length} bytes`)
  return OK
}

const concurrent: Case = async (subject) => {
  const request = { path: "/echo", endpointId: "concurrent" }
  await Promise.all(Array.from({ length: 50 }, () => expectResponse(subject, request, 200, "5")))
  return OK
}

const LATENCY_MS = 20
/** From before the server closes until after the client has seen the close, and one long after. */
const OFFSETS_MS = [...Array.from({ length: 21 }, (_, i) => 4 * i - 3 * LATENCY_MS), 300]

/** A server closes its idle connections while requests are on their way to it, over a link with latency. None may fail. */
const idleClose: Case = async (subject) => {
  const { idleMs } = subject.kind
  if (idleMs === undefined) return NOT_APPLICABLE
  const link = await FaultProxy.start({ host: "127.0.0.1", port: subject.place.port })
  link.latency(LATENCY_MS)
  const distant = { ...subject, place: { ...subject.place, port: link.port } }
  try {
    await Promise.all(
      OFFSETS_MS.map(async (offsetMs) => {
        const request = { path: "/echo", endpointId: `idle ${offsetMs}` }
        await expectResponse(distant, request, 200, "5")
        // The moment of the close is the server's own: no clock of ours can be moved to it.
        await wait(idleMs + offsetMs)
        await expectResponse(distant, request, 200, "5")
      }),
    )
    return OK
  } finally {
    await link.close()
  }
}

const whereItIs =
  (feature: "tls" | "ipv6" | "interim", run: Case): Case =>
  async (subject) =>
    subject.kind[feature] ? run(subject) : NOT_APPLICABLE

const overIpv6: Case = async (subject) =>
  subject.place.addresses.length > 1
    ? simple({ path: "/echo", host: "[::1]" }, 200, "5")(subject)
    : NOT_APPLICABLE

export const CASES: { readonly [name: string]: Case } = {
  post: simple({ path: "/echo" }, 200, "5"),
  "1 MiB": simple({ path: "/echo", bytes: MIB }, 200, String(MIB)),
  chunked: simple({ path: "/chunked" }, 200, "one two three"),
  "interim 1xx": whereItIs("interim", simple({ path: "/interim" }, 200, "5")),
  "empty 204": simple({ path: "/empty" }, 204, ""),
  "error 500": simple({ path: "/error" }, 500, "broken"),
  "redirect 302": async (subject) => {
    const { outcome } = await post(subject, { path: "/redirect" })
    if (outcome.kind !== "response" || outcome.status !== 302) throw new Error(JSON.stringify(outcome))
    return OK
  },
  "200 kB back": truncated,
  "20 in a row": keepAlive,
  "Connection: close": connectionClose,
  "early 413": earlyError,
  "50 at once": concurrent,
  "idle close": idleClose,
  TLS: whereItIs("tls", simple({ path: "/echo", isSecure: true }, 200, "5")),
  IPv6: whereItIs("ipv6", overIpv6),
}

/** Opens vetted connections: resolve, judge, connect to one of these very addresses, look again at where the socket really went. */
import { connect, isIP, type Socket } from "node:net"
import { connect as connectTls } from "node:tls"
import type { ClientTls } from "../../core/auth.ts"
import type { Clock } from "../../core/clock.ts"
import { EgressError, type Guard } from "./guard.ts"
import { openTunnel, type Tunnel } from "./proxy.ts"
import { race } from "./race.ts"

/** What every connection reads into, so that a read makes no buffer: what came is taken before anything else is read. */
const READ_BUFFER = Buffer.allocUnsafeSlow(16_384)
const KEEP_ALIVE_PROBE_MS = 60_000

/** Told the first so many bytes of a buffer, which is used again afterwards, by other connections too. */
export type OnBytes = (bytes: Buffer, length: number) => void

/** Opens one connection. It rejects with an EgressError or with what the system says. */
export type Open = (onBytes: OnBytes) => Promise<Socket>

export interface OpenerOptions {
  readonly guard: Guard
  readonly clock: Clock
  readonly endpointId: string
  readonly origin: string
  readonly timeoutMs: number
  readonly tls: ClientTls
  /** Ends every connection, also those that are still being opened. */
  readonly signal: AbortSignal
}

export function guardedOpener(options: OpenerOptions): Open {
  const { guard, clock, endpointId, timeoutMs, signal } = options
  const url = new URL(options.origin)
  const isSecure = url.protocol === "https:"
  const port = url.port === "" ? (isSecure ? 443 : 80) : Number(url.port)
  const { proxy } = guard.settings
  const secure = isSecure ? tlsOptions(url, options.tls) : null
  const ready = isSecure ? "secureConnect" : "connect"
  /** The last TLS session, which the next connection resumes. */
  let session: Buffer | undefined

  const begin = (address: string, onBytes: OnBytes, tunnel?: Socket): Socket => {
    const host = { host: address, port, noDelay: true, keepAlive: true }
    const direct = { ...host, keepAliveInitialDelay: KEEP_ALIVE_PROBE_MS, onread: intoTheBuffer(onBytes) }
    if (secure === null) return connect(direct)
    const way = tunnel === undefined ? direct : { ...host, socket: tunnel }
    const socket = connectTls({ ...way, ...secure, ...(session === undefined ? {} : { session }) })
    return socket.on("session", (latest) => {
      session = latest
    })
  }

  return async (onBytes) => {
    const addresses = await guard.vet(url, endpointId)
    signal.throwIfAborted()
    if (proxy === null)
      return race({
        ...{ addresses, ready, timeoutMs, clock, signal },
        begin: (address) => begin(address, onBytes),
        objection: (socket) => objectionTo(guard, socket),
      })
    const endsAtMs = clock.elapsedMs() + timeoutMs
    const tunnel = await openTunnel({ proxy, addresses, port, endsAtMs, clock, signal })
    const socket = isSecure ? await secured(tunnel, onBytes, endsAtMs) : tunnel.socket
    // What reads into the buffer is decided when a socket is made.
    return socket.on("data", (bytes: Buffer) => onBytes(bytes, bytes.length)).resume()
  }

  async function secured({ address, socket }: Tunnel, onBytes: OnBytes, endsAtMs: number): Promise<Socket> {
    try {
      return await race({
        ...{ addresses: [address], ready, clock, signal },
        timeoutMs: Math.ceil(endsAtMs - clock.elapsedMs()),
        begin: () => begin(address, onBytes, socket),
        objection: () => null,
      })
    } catch (error) {
      // A key that cannot be read is found before anything owns the tunnel.
      socket.destroy()
      throw error
    }
  }
}

/** Verification is asked for in so many words: an environment variable must not be able to switch it off. */
function tlsOptions({ hostname }: URL, tls: ClientTls) {
  const name = isIP(hostname.replace(/^\[|\]$/g, "")) === 0 ? { servername: hostname } : {}
  // The name goes into SNI and is looked for in the certificate; an address is compared with the one that is connected to.
  const fixed = { rejectUnauthorized: true, minVersion: "TLSv1.2", ALPNProtocols: ["http/1.1"] } as const
  return { ...fixed, ...name, ...tls }
}

function intoTheBuffer(onBytes: OnBytes) {
  return {
    buffer: READ_BUFFER,
    callback: (length: number) => {
      onBytes(READ_BUFFER, length)
      return true
    },
  }
}

/** Looks again, at where the socket really went. */
function objectionTo(guard: Guard, { remoteAddress }: Socket): EgressError | null {
  return guard.allows(remoteAddress)
    ? null
    : new EgressError("target_forbidden", `the socket went to ${remoteAddress}`)
}

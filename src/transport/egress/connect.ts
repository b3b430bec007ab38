/** Opens a socket to an allowed address: resolve the name, check its addresses, connect to one of them, check the address of the open socket. */
import { connect, isIP, type Socket } from "node:net"
import { connect as connectTls } from "node:tls"
import type { ClientTls } from "../../core/auth.ts"
import type { Clock } from "../../core/clock.ts"
import { TransportError } from "../error.ts"
import type { OnBytes, OnPhase, OpenSocket, SocketOptions } from "../socket.ts"
import type { Guard } from "./guard.ts"
import { openTunnel, type Tunnel } from "./proxy.ts"
import { race } from "./race.ts"

/** Shared by all sockets, so that a read allocates nothing: the bytes are consumed before the next read. */
const READ_BUFFER = Buffer.allocUnsafeSlow(16_384)
const KEEP_ALIVE_PROBE_MS = 60_000

export function guardedOpener(guard: Guard, clock: Clock, options: SocketOptions): OpenSocket {
  const { endpointId, timeoutMs, signal } = options
  const url = new URL(options.origin)
  const isSecure = url.protocol === "https:"
  const port = url.port === "" ? (isSecure ? 443 : 80) : Number(url.port)
  const { proxy } = guard.settings
  const secure = isSecure ? tlsOptions(url, options.tls) : null
  const ready = isSecure ? "secureConnect" : "connect"
  /** The latest TLS session. The next connection resumes it. */
  let session: Buffer | undefined

  const begin = (address: string, onBytes: OnBytes, onPhase: OnPhase, tunnel?: Socket): Socket => {
    const host = { host: address, port, noDelay: true, keepAlive: true }
    const direct = { ...host, keepAliveInitialDelay: KEEP_ALIVE_PROBE_MS, onread: intoReadBuffer(onBytes) }
    const connected = () => onPhase("connected")
    if (secure === null) return connect(direct).once("connect", connected)
    const carrier = tunnel === undefined ? direct : { ...host, socket: tunnel }
    const socket = connectTls({ ...carrier, ...secure, ...(session === undefined ? {} : { session }) })
    if (tunnel === undefined) socket.once("connect", connected)
    socket.once("secureConnect", () => onPhase("secured"))
    return socket.on("session", (latest) => {
      session = latest
    })
  }

  return async (onBytes, onPhase) => {
    const addresses = await guard.vet(url, endpointId)
    onPhase("resolved")
    signal.throwIfAborted()
    if (proxy === null)
      return race({
        ...{ addresses, ready, timeoutMs, clock, signal },
        begin: (address) => begin(address, onBytes, onPhase),
        problem: (socket) => addressProblem(guard, socket),
      })
    const endsAtMs = clock.elapsedMs() + timeoutMs
    const tunnel = await openTunnel({ proxy, addresses, port, endsAtMs, clock, signal })
    onPhase("connected")
    const socket = isSecure ? await secured(tunnel, onBytes, onPhase, endsAtMs) : tunnel.socket
    // The option `onread` is only for a new socket, and the tunnel's socket exists already.
    return socket.on("data", (bytes: Buffer) => onBytes(bytes, bytes.length)).resume()
  }

  async function secured(
    { address, socket }: Tunnel,
    onBytes: OnBytes,
    onPhase: OnPhase,
    endsAtMs: number,
  ): Promise<Socket> {
    try {
      return await race({
        ...{ addresses: [address], ready, clock, signal },
        timeoutMs: Math.ceil(endsAtMs - clock.elapsedMs()),
        begin: () => begin(address, onBytes, onPhase, socket),
        problem: () => null,
      })
    } catch (error) {
      // A client key that cannot be read fails before a TLS socket owns the tunnel.
      socket.destroy()
      throw error
    }
  }
}

/** `rejectUnauthorized` is explicit: otherwise NODE_TLS_REJECT_UNAUTHORIZED could switch verification off. */
function tlsOptions({ hostname }: URL, tls: ClientTls) {
  const name = isIP(hostname.replace(/^\[|\]$/g, "")) === 0 ? { servername: hostname } : {}
  // A name goes into SNI and must be in the certificate; an address must be in the certificate as well, and SNI takes none.
  const fixed = { rejectUnauthorized: true, minVersion: "TLSv1.2", ALPNProtocols: ["http/1.1"] } as const
  return { ...fixed, ...name, ...tls }
}

function intoReadBuffer(onBytes: OnBytes) {
  return {
    buffer: READ_BUFFER,
    callback: (length: number) => {
      onBytes(READ_BUFFER, length)
      return true
    },
  }
}

/** Checks the address that the socket really connected to. */
function addressProblem(guard: Guard, { remoteAddress }: Socket): TransportError | null {
  return guard.allows(remoteAddress)
    ? null
    : new TransportError("target_forbidden", `the socket connected to ${remoteAddress}`)
}

/**
 * The seam between the two halves of the HTTP transport: `egress/` decides where a socket may go and opens it, `http1/` speaks HTTP/1.1
 * over it. Neither folder imports the other. `http.ts` joins them.
 */
import type { Socket } from "node:net"
import type { ClientTls } from "../core/auth.ts"
import type { AttemptPhase } from "../observe/tracing.ts"

/** Takes the first `length` bytes of a buffer. The buffer is reused afterwards, for other sockets too. */
export type OnBytes = (buffer: Buffer, length: number) => void

/** Told while the socket is being opened. */
export type OnPhase = (phase: AttemptPhase) => void

/** Opens one socket. It rejects with a TransportError or with the system's error. */
export type OpenSocket = (onBytes: OnBytes, onPhase: OnPhase) => Promise<Socket>

export interface SocketOptions {
  readonly endpointId: string
  readonly origin: string
  /** For the connection, from name resolution to the end of the TLS handshake. */
  readonly timeoutMs: number
  readonly tls: ClientTls
  /** Destroys every socket, also a socket that is still being opened. */
  readonly signal: AbortSignal
}

/** One opener serves all connections of a pool: it keeps the TLS session, which further connections resume. */
export type MakeOpener = (options: SocketOptions) => OpenSocket

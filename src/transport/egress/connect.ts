/** Opens vetted connections: resolve, judge, connect to that very address, look again at where the socket really went. */
import type { Socket } from "node:net"
import { buildConnector } from "undici"
import type { ClientTls } from "../../core/auth.ts"
import type { Clock } from "../../core/clock.ts"
import { endWith } from "./ending.ts"
import { EgressError, type Guard } from "./guard.ts"
import { openTunnel } from "./proxy.ts"

const SIP_BYTES = 1024
/** Eight times what is kept of a body: one that comes in chunks of a single byte takes six. */
const MOST_ANSWER_BYTES = 524_288

type Connect = ReturnType<typeof buildConnector>
type Callback = Parameters<Connect>[1]

export interface ConnectorOptions {
  readonly guard: Guard
  readonly clock: Clock
  readonly endpointId: string
  readonly timeoutMs: number
  readonly tls: ClientTls
  /** Ends every connection, also those that are still being opened, which undici does not know yet. */
  readonly signal: AbortSignal
}

export function guardedConnector(options: ConnectorOptions): Connect {
  const { guard, clock, endpointId, timeoutMs, tls, signal } = options
  // Verification is asked for in so many words: an environment variable must not be able to switch it off.
  const secure = { rejectUnauthorized: true, minVersion: "TLSv1.2", allowH2: false } as const
  const open = buildConnector({ timeout: timeoutMs, ...secure, ...tls })
  // undici gives back the socket that it begins to open, though its types do not say so.
  const begin = (...args: Parameters<Connect>) => endWith(signal, open(...args) as unknown as Socket)
  const { proxy } = guard.settings
  return (target, callback) => {
    const url = new URL(`${target.protocol}//${target.host ?? target.hostname}`)
    guard
      .vet(url, endpointId)
      .then(async (address) => {
        signal.throwIfAborted()
        // The socket goes to the address; the name is still in `host`, which undici takes SNI and the certificate's name from.
        const vetted = { ...target, hostname: address }
        if (proxy === null) return begin(vetted, lookAgain(guard, callback))
        const socket = await openTunnel({ proxy, address, port: portOf(url), timeoutMs, clock, signal })
        if (url.protocol === "http:") return callback(null, inSips(socket))
        begin({ ...vetted, httpSocket: socket }, (...[error, secured]) => {
          if (error !== null) callback(error, null)
          else callback(null, inSips(secured))
        })
      })
      .catch((error) => callback(error, null))
  }
}

function lookAgain(guard: Guard, callback: Callback): Callback {
  return (...[error, socket]) => {
    if (error !== null) return callback(error, null)
    if (guard.allows(socket.remoteAddress)) return callback(null, inSips(socket))
    socket.destroy()
    callback(new EgressError("target_forbidden", `the socket went to ${socket.remoteAddress}`), null)
  }
}

/**
 * Hands bytes to undici a little at a time, and none once the socket is destroyed. For every header of a read after the limit is
 * passed it makes an error with a stack: a flood of headers in reads of 64 KiB held up the event loop for 100 to 170 ms
 * each, in reads of 4 KiB for 16 ms, of 1 KiB for 7 ms.
 *
 * Counts every byte: undici's limits see headers and bodies only. A reason phrase, a chunk's extension or line breaks without end
 * were read at the speed of the line until the deadline, and one such receiver made the others ten times slower.
 */
function inSips<S extends Socket>(socket: S): S {
  const read = socket.read.bind(socket)
  let written = 0
  let taken = 0
  socket.read = (size?: number) => {
    if (socket.destroyed) return null
    // Only requests are written: what comes now answers another.
    if (socket.bytesWritten !== written) {
      written = socket.bytesWritten
      taken = 0
    }
    const sip = read(size ?? (socket.readableLength > SIP_BYTES ? SIP_BYTES : undefined))
    taken += sip?.length ?? 0
    if (taken <= MOST_ANSWER_BYTES) return sip
    socket.destroy(
      new EgressError("response_too_large", `more than ${MOST_ANSWER_BYTES} bytes for one answer`),
    )
    return null
  }
  return socket
}

function portOf(url: URL): number {
  return url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port)
}

/** Opens vetted connections: resolve, judge, connect to that very address, look again at where the socket really went. */
import type { Socket } from "node:net"
import { buildConnector } from "undici"
import type { ClientTls } from "../../core/auth.ts"
import { EgressError, type Guard } from "./guard.ts"
import { openTunnel } from "./proxy.ts"

const SIP_BYTES = 4096

type Connect = ReturnType<typeof buildConnector>
type Callback = Parameters<Connect>[1]

export function guardedConnector(
  guard: Guard,
  endpointId: string,
  timeoutMs: number,
  tls: ClientTls,
): Connect {
  // Verification is asked for in so many words: an environment variable must not be able to switch it off.
  const secure = { rejectUnauthorized: true, minVersion: "TLSv1.2", allowH2: false } as const
  const open = buildConnector({ timeout: timeoutMs, ...secure, ...tls })
  const { proxy } = guard.settings
  return (options, callback) => {
    const url = new URL(`${options.protocol}//${options.host ?? options.hostname}`)
    guard
      .vet(url, endpointId)
      .then(async ({ address, name }) => {
        // The name goes into SNI and is what the certificate must be for; the socket goes to the address.
        const vetted = { ...options, hostname: address, ...(name === null ? {} : { servername: name }) }
        if (proxy === null) return open(vetted, lookAgain(guard, callback))
        const socket = await openTunnel(proxy, address, portOf(url), timeoutMs)
        if (url.protocol === "http:") return callback(null, inSips(socket))
        open({ ...vetted, httpSocket: socket }, (...[error, secured]) => {
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
 * passed it makes an error with a stack: a flood of headers in reads of 64 KiB held up the event loop for 100 to 170 ms each.
 */
function inSips<S extends Socket>(socket: S): S {
  const read = socket.read.bind(socket)
  socket.read = (size?: number) => {
    if (socket.destroyed) return null
    return read(size ?? (socket.readableLength > SIP_BYTES ? SIP_BYTES : undefined))
  }
  return socket
}

function portOf(url: URL): number {
  return url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port)
}

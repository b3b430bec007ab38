/** A CONNECT tunnel through the operator's proxy, to an address that the guard allowed: the proxy never gets a name to resolve. */
import { connect, type Socket } from "node:net"
import type { Clock } from "../../core/clock.ts"
import type { FailureCause } from "../../core/failure-causes.ts"
import { TransportError } from "../error.ts"
import { destroyOnAbort } from "./destroy-on-abort.ts"

const MOST_HEAD_BYTES = 8192
const END_OF_HEAD = "\r\n\r\n"

/** Each address but the last gets its share of the time that is left, at least a quarter, so that the next address can be tried. */
const MOST_SHARES = 4
const LOGIN_REQUIRED = "407"

interface ProxyOptions {
  readonly proxy: URL
  readonly port: number
  readonly clock: Clock
  readonly signal: AbortSignal
}

interface TunnelOptions extends ProxyOptions {
  /** At least one, in the order in which they are tried. */
  readonly addresses: readonly string[]
  /** By the clock's `elapsedMs`. */
  readonly endsAtMs: number
}

export interface Tunnel {
  readonly address: string
  readonly socket: Socket
}

class TunnelError extends TransportError {
  /** The proxy itself failed: other addresses would fail as well. */
  readonly isOfProxy: boolean

  constructor(failure: FailureCause, detail: string, isOfProxy: boolean) {
    super(failure, detail)
    this.isOfProxy = isOfProxy
  }
}

/** Tries one address after the other. If all fail it rejects with the first failure. */
export async function openTunnel({ addresses, endsAtMs, ...options }: TunnelOptions): Promise<Tunnel> {
  const failures: TunnelError[] = []
  for (const [tried, address] of addresses.entries()) {
    const shares = Math.min(addresses.length - tried, MOST_SHARES)
    try {
      const timeoutMs = (endsAtMs - options.clock.elapsedMs()) / shares
      return { address, socket: await tunnelTo(address, timeoutMs, options) }
    } catch (error) {
      failures.push(error as TunnelError)
      if ((error as TunnelError).isOfProxy || options.signal.aborted) break
    }
  }
  throw failures[0]!
}

function tunnelTo(
  address: string,
  timeoutMs: number,
  { proxy, port, clock, signal }: ProxyOptions,
): Promise<Socket> {
  const target = address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`
  const login = proxy.username === "" ? "" : `proxy-authorization: Basic ${credentials(proxy)}\r\n`
  return new Promise((resolve, reject) => {
    const host = proxy.hostname.replace(/^\[|\]$/g, "")
    const socket = destroyOnAbort(signal, connect({ host, port: Number(proxy.port || 80) }))
    let response = Buffer.alloc(0)
    let isConnected = false
    const fail = (detail: string, isOfProxy = false, cause: FailureCause = "network_error") => {
      deadline.cancel()
      socket.destroy()
      reject(new TunnelError(cause, `the proxy ${proxy.host}: ${detail}`, isOfProxy))
    }
    const onError = (error: Error) => fail(error.message, !isConnected)
    const onClose = () => fail("closed the connection")
    // Not the socket's own timeout: a proxy that drips its response would reset it with every byte.
    const deadline = clock.setTimer(timeoutMs, () => fail("did not answer in time", false, "timeout"))
    const onData = (chunk: Buffer) => {
      response = Buffer.concat([response, chunk])
      const end = response.indexOf(END_OF_HEAD)
      if (end === -1)
        return response.length > MOST_HEAD_BYTES
          ? fail(`sent more than ${MOST_HEAD_BYTES} bytes of headers`)
          : undefined
      const status = /^HTTP\/1\.[01] (\d{3})/.exec(response.toString("latin1"))?.[1]
      if (!status?.startsWith("2"))
        return fail(`answered ${status ?? "nonsense"} to CONNECT`, status === LOGIN_REQUIRED)
      deadline.cancel()
      // The caller is told of later failures by `close`; an `error` without a listener would end the process.
      socket
        .off("data", onData)
        .off("error", onError)
        .off("close", onClose)
        .on("error", () => {})
      socket.pause()
      const rest = response.subarray(end + END_OF_HEAD.length)
      if (rest.length > 0) socket.unshift(rest)
      resolve(socket)
    }
    socket.on("data", onData).on("error", onError).on("close", onClose)
    socket.once("connect", () => {
      isConnected = true
      socket.write(`CONNECT ${target} HTTP/1.1\r\nhost: ${target}\r\n${login}\r\n`)
    })
  })
}

function credentials({ username, password }: URL): string {
  return Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString("base64")
}

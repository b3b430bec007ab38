/** A tunnel through the operator's proxy to an address that was already vetted: the proxy never sees a name to resolve. */
import { connect, type Socket } from "node:net"
import type { Clock } from "../../core/clock.ts"
import type { FailureCause } from "../../core/outcome.ts"
import { endWith } from "./ending.ts"
import { EgressError } from "./guard.ts"

const MOST_ANSWER_BYTES = 8192
const END_OF_HEAD = "\r\n\r\n"

/** The first of several addresses has at most this part of the time, so that the next one has its turn. */
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

class TunnelError extends EgressError {
  /** The proxy could not be used at all: another address would fail alike. */
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
    const socket = endWith(signal, connect({ host, port: Number(proxy.port || 80) }))
    let answer = Buffer.alloc(0)
    let isAsked = false
    const fail = (detail: string, isOfProxy = false, cause: FailureCause = "network_error") => {
      deadline.cancel()
      socket.destroy()
      reject(new TunnelError(cause, `the proxy ${proxy.host}: ${detail}`, isOfProxy))
    }
    const onError = (error: Error) => fail(error.message, !isAsked)
    const onClose = () => fail("closed the connection")
    // Not the socket's own timer, which a proxy that drips its answer would set back with every byte.
    const deadline = clock.setTimer(timeoutMs, () => fail("did not answer in time", false, "timeout"))
    const onData = (chunk: Buffer) => {
      answer = Buffer.concat([answer, chunk])
      const end = answer.indexOf(END_OF_HEAD)
      if (end === -1)
        return answer.length > MOST_ANSWER_BYTES ? fail("answered at too great length") : undefined
      const status = /^HTTP\/1\.[01] (\d{3})/.exec(answer.toString("latin1"))?.[1]
      if (!status?.startsWith("2"))
        return fail(`answered ${status ?? "nonsense"} to CONNECT`, status === LOGIN_REQUIRED)
      deadline.cancel()
      // Whoever has it from here on is told by its end, also where it is under a TLS connection.
      socket
        .off("data", onData)
        .off("error", onError)
        .off("close", onClose)
        .on("error", () => {})
      socket.pause()
      const rest = answer.subarray(end + END_OF_HEAD.length)
      if (rest.length > 0) socket.unshift(rest)
      resolve(socket)
    }
    socket.on("data", onData).on("error", onError).on("close", onClose)
    socket.once("connect", () => {
      isAsked = true
      socket.write(`CONNECT ${target} HTTP/1.1\r\nhost: ${target}\r\n${login}\r\n`)
    })
  })
}

function credentials({ username, password }: URL): string {
  return Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString("base64")
}

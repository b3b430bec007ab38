/** A tunnel through the operator's proxy to an address that was already vetted: the proxy never sees a name to resolve. */
import { connect, type Socket } from "node:net"
import type { Clock } from "../../core/clock.ts"
import type { FailureCause } from "../../core/outcome.ts"
import { endWith } from "./ending.ts"
import { EgressError } from "./guard.ts"

const MOST_ANSWER_BYTES = 8192
const END_OF_HEAD = "\r\n\r\n"

interface TunnelOptions {
  readonly proxy: URL
  readonly address: string
  readonly port: number
  readonly timeoutMs: number
  readonly clock: Clock
  readonly signal: AbortSignal
}

export function openTunnel({
  proxy,
  address,
  port,
  timeoutMs,
  clock,
  signal,
}: TunnelOptions): Promise<Socket> {
  const target = address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`
  const login = proxy.username === "" ? "" : `proxy-authorization: Basic ${credentials(proxy)}\r\n`
  return new Promise((resolve, reject) => {
    const host = proxy.hostname.replace(/^\[|\]$/g, "")
    const socket = endWith(signal, connect({ host, port: Number(proxy.port || 80) }))
    let answer = Buffer.alloc(0)
    const fail = (detail: string, cause: FailureCause = "network_error") => {
      deadline.cancel()
      socket.destroy()
      reject(new EgressError(cause, `the proxy ${proxy.host}: ${detail}`))
    }
    const onError = (error: Error) => fail(error.message)
    const onClose = () => fail("closed the connection")
    // Not the socket's own timer, which a proxy that drips its answer would set back with every byte.
    const deadline = clock.setTimer(timeoutMs, () => fail("did not answer in time", "timeout"))
    const onData = (chunk: Buffer) => {
      answer = Buffer.concat([answer, chunk])
      const end = answer.indexOf(END_OF_HEAD)
      if (end === -1)
        return answer.length > MOST_ANSWER_BYTES ? fail("answered at too great length") : undefined
      const status = /^HTTP\/1\.[01] (\d{3})/.exec(answer.toString("latin1"))?.[1]
      if (!status?.startsWith("2")) return fail(`answered ${status ?? "nonsense"} to CONNECT`)
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
    socket.once("connect", () =>
      socket.write(`CONNECT ${target} HTTP/1.1\r\nhost: ${target}\r\n${login}\r\n`),
    )
  })
}

function credentials({ username, password }: URL): string {
  return Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString("base64")
}

/** A tunnel through the operator's proxy to an address that was already vetted: the proxy never sees a name to resolve. */
import { connect, type Socket } from "node:net"
import { EgressError } from "./guard.ts"

const MOST_ANSWER_BYTES = 8192
const END_OF_HEAD = "\r\n\r\n"

export function openTunnel(proxy: URL, address: string, port: number, timeoutMs: number): Promise<Socket> {
  const target = address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`
  const login = proxy.username === "" ? "" : `proxy-authorization: Basic ${credentials(proxy)}\r\n`
  return new Promise((resolve, reject) => {
    const socket = connect({ host: proxy.hostname.replace(/^\[|\]$/g, ""), port: Number(proxy.port || 80) })
    let answer = Buffer.alloc(0)
    const fail = (detail: string) => {
      clearTimeout(deadline)
      socket.destroy()
      reject(new EgressError("network_error", `the proxy ${proxy.host}: ${detail}`))
    }
    const onError = (error: Error) => fail(error.message)
    const onClose = () => fail("closed the connection")
    // Not the socket's own timer, which a proxy that drips its answer would set back with every byte.
    const deadline = setTimeout(() => fail("did not answer in time"), timeoutMs)
    const onData = (chunk: Buffer) => {
      answer = Buffer.concat([answer, chunk])
      const end = answer.indexOf(END_OF_HEAD)
      if (end === -1)
        return answer.length > MOST_ANSWER_BYTES ? fail("answered at too great length") : undefined
      const status = /^HTTP\/1\.[01] (\d{3})/.exec(answer.toString("latin1"))?.[1]
      if (!status?.startsWith("2")) return fail(`answered ${status ?? "nonsense"} to CONNECT`)
      clearTimeout(deadline)
      socket.off("data", onData).off("error", onError).off("close", onClose)
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

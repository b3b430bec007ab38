/** A small CONNECT proxy that keeps what it was asked for and answers as a test says. */
import { once } from "node:events"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import { onTestFinished } from "vitest"

export interface Asked {
  /** As it stands in the request: `address:port`. */
  readonly target: string
  readonly head: string
}

type Reply = (socket: Socket, target: string) => void

export class TunnelProxy {
  readonly asked: Asked[] = []
  connections = 0
  reply: Reply = joinUp
  readonly #watchers = new Set<() => void>()
  readonly #host: string
  #port = 0

  private constructor(host: string) {
    this.#host = host
  }

  static async start(host = "127.0.0.1"): Promise<TunnelProxy> {
    const proxy = new TunnelProxy(host)
    const sockets = new Set<Socket>()
    const server = createServer((socket) => {
      proxy.connections++
      sockets.add(socket)
      socket.on("error", () => {}).on("close", () => sockets.delete(socket))
      socket.once("data", (bytes) => proxy.#ask(socket, bytes.toString("latin1")))
    })
    await once(server.listen(0, host), "listening")
    proxy.#port = (server.address() as AddressInfo).port
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy()
      server.close()
    })
    return proxy
  }

  url(login = ""): string {
    return `http://${login}${this.#host.includes(":") ? `[${this.#host}]` : this.#host}:${this.#port}`
  }

  /** Resolves when so many tunnels have been asked for. */
  async askedFor(count: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const check = () => {
        if (this.asked.length < count) return
        this.#watchers.delete(check)
        resolve()
      }
      this.#watchers.add(check)
      check()
    })
  }

  #ask(socket: Socket, head: string): void {
    const target = /^CONNECT (\S+) HTTP\/1\.1\r\n/.exec(head)?.[1] ?? "nothing that is a tunnel"
    this.asked.push({ target, head })
    this.reply(socket, target)
    for (const watcher of this.#watchers) watcher()
  }
}

/** Connects the client to its target, as a proxy does after CONNECT. */
function joinUp(socket: Socket, target: string): void {
  const { hostname, port } = new URL(`http://${target}`)
  const onward = connect(Number(port), hostname.replace(/^\[|\]$/g, ""), () => {
    socket.write("HTTP/1.1 200 Connection established\r\nvia: test\r\n\r\n")
    socket.pipe(onward).pipe(socket)
  })
  onward.on("error", () => socket.destroy()).on("close", () => socket.destroy())
  socket.on("close", () => onward.destroy())
}

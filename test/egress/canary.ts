/** A server on every address of this machine that nothing may ever reach: each connection to it is a hole in the guard. */
import { once } from "node:events"
import { type AddressInfo, createServer, type Socket } from "node:net"
import { networkInterfaces } from "node:os"
import { expect, onTestFinished } from "vitest"

/** The one address that the tests' own receivers are on; the canary's addresses stay closed. */
export const OPEN = "127.0.0.2"

export class Canary {
  /** Connections, not requests: to have been connected to is already too much. */
  hits = 0
  readonly port: number

  private constructor(port: number) {
    this.port = port
  }

  /** Expects at the end of the test that it was not reached, unless the test is about the canary itself. */
  static start(expectedHits = 0): Promise<Canary> {
    // Both families at once: 127.0.0.1, ::1, ::ffff:127.0.0.1 and the addresses of the machine's interfaces.
    return Canary.#listen({ host: "::", port: 0 }, expectedHits)
  }

  /** On this machine's own address, at the port of a receiver that has an open one: only the address tells them apart. */
  static beside(port: number): Promise<Canary> {
    return Canary.#listen({ host: "127.0.0.1", port }, 0)
  }

  static async #listen(at: { host: string; port: number }, expectedHits: number): Promise<Canary> {
    const sockets = new Set<Socket>()
    const server = createServer((socket) => {
      canary.hits++
      sockets.add(socket)
      socket.on("error", () => {}).on("close", () => sockets.delete(socket))
      socket.end("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecret")
    })
    await once(server.listen(at), "listening")
    const canary = new Canary((server.address() as AddressInfo).port)
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy()
      server.close()
      expect(canary.hits, "connections to the canary").toBe(expectedHits)
    })
    return canary
  }

  url(host = "127.0.0.1", path = "/secret"): string {
    return `http://${host}:${this.port}${path}`
  }
}

/** This machine's addresses on its networks, as they stand in a URL. */
export function interfaceHosts(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  return all
    .filter(({ internal, scopeid }) => !internal && !scopeid)
    .map(({ address }) => (address.includes(":") ? `[${address}]` : address))
}

/** The opener by itself: it refuses forbidden targets without any earlier check, and no socket outlives its owner. */
import { once } from "node:events"
import { type AddressInfo, createServer } from "node:net"
import { describe, expect, onTestFinished, test } from "vitest"
import { Canary, interfaceHosts } from "../../../test/egress/canary.ts"
import { systemClock } from "../../core/clock.ts"
import { HttpTransport } from "../http.ts"
import { guardedOpener } from "./connect.ts"
import { Guard } from "./guard.ts"
import { type EgressInput, parseEgress } from "./settings.ts"

const LITERALS = [
  ...["127.0.0.1", "127.1", "0", "0x7f.1", "0177.0.0.1", "2130706433", "①②⑦.⓪.⓪.①", "１２７.０.０.１"],
  ...["localhost", "localhost.", "[::1]", "[::]", "[::ffff:7f00:1]", "[::7f00:1]", "[::ffff:0:7f00:1]"],
  ...["[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fe80::1]", "[fd00:ec2::254]", "10.0.0.1", "172.16.0.1"],
  ...["192.168.0.1", "100.100.100.200", "169.254.169.254", "168.63.129.16", "192.0.0.192", "224.0.0.1"],
  ...["255.255.255.255", "127.0.0.1.", "printer", "api.localhost", "nas.local", "db.internal"],
  ...interfaceHosts(),
]

function guard(input: EgressInput = {}): Guard {
  const made = new Guard(parseEgress(input), systemClock())
  onTestFinished(() => made.close())
  return made
}

describe("a forbidden target gets no connection", () => {
  test.each(LITERALS)("%s", async (host) => {
    const canary = await Canary.start()
    for (const protocol of ["http:", "https:"]) {
      const url = URL.parse(`${protocol}//${host}:${canary.port}`)!
      const open = guardedOpener(guard(), systemClock(), {
        endpointId: "ep_1",
        origin: url.origin,
        timeoutMs: 1000,
        tls: {},
        signal: new AbortController().signal,
      })
      await expect(
        open(
          () => {},
          () => {},
        ),
      ).rejects.toMatchObject({ failure: "target_forbidden" })
      await expect(guard().vet(url, "ep_1")).rejects.toMatchObject({ failure: "target_forbidden" })
    }
  })
})

describe("closing the transport destroys a connection that is being opened", () => {
  /** Accepts connections and writes only `greeting`, once. `heard` resolves after `times` reads, `left` when the connection is closed. */
  async function silent(times: number, greeting = "") {
    const heard = Promise.withResolvers<void>()
    const left = Promise.withResolvers<void>()
    const server = createServer((socket) => {
      let pieces = 0
      socket.on("error", () => {}).on("close", () => left.resolve())
      socket.on("data", () => {
        if (++pieces === times) heard.resolve()
        if (pieces === 1) socket.write(greeting)
      })
    })
    await once(server.listen(0, "127.0.0.1"), "listening")
    onTestFinished(() => void server.close())
    return { heard: heard.promise, left: left.promise, port: (server.address() as AddressInfo).port }
  }

  function sending(url: string, input: EgressInput = {}) {
    const http = new HttpTransport(systemClock(), guard({ allow: ["127.0.0.0/8"], ...input }))
    const hours = { timeoutMs: 7_200_000, connectTimeoutMs: 7_200_000 }
    const request = { endpointId: "ep_1", version: 1, headers: {}, body: Buffer.from("x"), tls: {} }
    return { http, sent: http.send({ ...request, ...hours, url }) }
  }

  test("with a TLS handshake that hangs", async () => {
    const { heard, left, port } = await silent(1)
    const { http, sent } = sending(`https://127.0.0.1:${port}/`)
    await heard
    await http.close()
    expect((await sent).outcome).toEqual({ kind: "interrupted" })
    await left
  })

  test("of an endpoint that was changed meanwhile", async () => {
    const { heard, left, port } = await silent(1)
    const { http } = sending(`https://127.0.0.1:${port}/`)
    await heard
    http.forget("ep_1")
    await http.close()
    await left
  })

  test.each([
    ["that hangs", "http", 1, ""],
    ["with a handshake behind it that hangs", "https", 2, "HTTP/1.1 200 OK\r\n\r\n"],
  ])("through a proxy %s", async (_what, scheme, times, greeting) => {
    const { heard, left, port } = await silent(times, greeting)
    const { http, sent } = sending(`${scheme}://127.0.0.1:1/`, {
      ports: "any",
      proxy: `http://127.0.0.1:${port}`,
    })
    await heard
    await http.close()
    expect((await sent).outcome).toEqual({ kind: "interrupted" })
    await left
  })
})

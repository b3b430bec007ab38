/** When a request is written: at the end of the turn of the event loop, once the connection is open. */
import { once } from "node:events"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import { expect, onTestFinished, test } from "vitest"
import { TransportError } from "../error.ts"
import type { OnBytes } from "../socket.ts"
import { Connection } from "./connection.ts"

const RESPONSE = Buffer.from("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

/** A connection to a receiver that never responds, and a record of what the connection reports. */
async function open() {
  const server = createServer(() => {}).listen(0, "127.0.0.1")
  await once(server, "listening")
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1")
  await once(socket, "connect")
  onTestFinished(() => {
    socket.destroy()
    server.close()
  })
  let receive: OnBytes = () => {}
  const opened = Promise.withResolvers<Socket>()
  const told: string[] = []
  /** The connection that takes over a request. */
  const other = new Connection(() => new Promise(() => {}), {
    freed: () => {},
    ended: () => {},
    another: () => other,
  })
  const owner = {
    freed: () => void told.push("freed"),
    ended: () => void told.push("ended"),
    another: () => other,
  }
  const connection = new Connection((onBytes) => {
    receive = onBytes
    return opened.promise
  }, owner)
  const requestOwner = {
    ended: (_response: unknown, error: Error | null) => void told.push(error?.message ?? "completed"),
    reached: () => {},
    moved: (to: Connection) => void told.push(to === other ? "moved" : "moved elsewhere"),
  }
  const request = () => connection.request("HEAD", "BODY", requestOwner)
  const isOpen = async () => {
    opened.resolve(socket)
    await opened.promise
    await nextTurn()
  }
  return {
    socket,
    connection,
    told,
    request,
    isOpen,
    receive: (bytes: Buffer) => receive(bytes, bytes.length),
  }
}

test("requests of one turn are written at its end, in their order", async () => {
  const [one, two] = [await open(), await open()]
  await one.isOpen()
  await two.isOpen()
  one.request()
  two.request()
  expect([one.socket.bytesWritten, two.socket.bytesWritten]).toEqual([0, 0])
  await Promise.resolve()
  expect(one.socket.bytesWritten).toBe(0)
  await nextTurn()
  expect([one.socket.bytesWritten, two.socket.bytesWritten]).toEqual([8, 8])
  one.receive(RESPONSE)
  expect(one.told).toEqual(["freed", "completed", "freed"])
})

test("a request that waited for its connection is written when the connection is open", async () => {
  const { socket, told, request, isOpen } = await open()
  request()
  await nextTurn()
  expect(socket.bytesWritten).toBe(0)
  await isOpen()
  await nextTurn()
  expect(socket.bytesWritten).toBe(8)
  expect(told).toEqual([])
})

test("a request that is cut off before the end of the turn is not written", async () => {
  const { socket, connection, told, request, isOpen } = await open()
  await isOpen()
  request()
  connection.cut(new TransportError("timeout", "too late"))
  await nextTurn()
  expect(socket.bytesWritten).toBe(0)
  expect(told).toEqual(["freed", "ended", "too late"])
})

test.each<[string, (stage: Awaited<ReturnType<typeof open>>) => void]>([
  ["ends", ({ socket }) => socket.emit("end")],
  ["breaks", ({ socket }) => socket.destroy(new Error("reset"))],
  ["sends bytes before the request", ({ receive }) => receive(RESPONSE)],
])("a request that is not written yet moves to another connection when its own %s", async (_what, end) => {
  const stage = await open()
  const { socket, told, request, isOpen } = stage
  await isOpen()
  request()
  end(stage)
  await nextTurn()
  expect(socket.bytesWritten).toBe(0)
  expect(told).toEqual(["freed", "ended", "moved"])
})

/** A request between its beginning and the end of the turn, in which it is written. */
import { once } from "node:events"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import { expect, onTestFinished, test } from "vitest"
import { TransportError } from "../error.ts"
import type { OnBytes } from "../socket.ts"
import { Connection } from "./connection.ts"

const ANSWER = Buffer.from("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

/** A connection to a receiver that says nothing, and what is written to it. */
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
  /** The one that a request goes to which was never written here. */
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
  const asker = {
    ended: (_answer: unknown, error: Error | null) => void told.push(error?.message ?? "answered"),
    moved: (to: Connection) => void told.push(to === other ? "moved" : "moved elsewhere"),
  }
  const request = () => connection.request("HEAD", "BODY", asker)
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
  one.receive(ANSWER)
  expect(one.told).toEqual(["freed", "answered", "freed"])
})

test("one that waited for its connection is written when that is open", async () => {
  const { socket, told, request, isOpen } = await open()
  request()
  await nextTurn()
  expect(socket.bytesWritten).toBe(0)
  await isOpen()
  await nextTurn()
  expect(socket.bytesWritten).toBe(8)
  expect(told).toEqual([])
})

test("one that is cut off before that is not written", async () => {
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
  ["answers before it was asked", ({ receive }) => receive(ANSWER)],
])("a request that is not written yet when its connection %s goes to another", async (_what, end) => {
  const stage = await open()
  const { socket, told, request, isOpen } = stage
  await isOpen()
  request()
  end(stage)
  await nextTurn()
  expect(socket.bytesWritten).toBe(0)
  expect(told).toEqual(["freed", "ended", "moved"])
})

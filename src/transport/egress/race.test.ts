/** The race by itself, with sockets that connect when the test says so; real ones are in `test/egress/several-addresses.test.ts`. */
import { Socket } from "node:net"
import { expect, test } from "vitest"
import { TestClock } from "../../../test/support/clock.ts"
import { TransportError } from "../error.ts"
import { race } from "./race.ts"

function start(addresses: readonly string[], { ready = "connect", timeoutMs = 10_000, closed = "" } = {}) {
  const clock = new TestClock()
  const closing = new AbortController()
  const sockets = new Map<string, Socket>()
  const result = race({
    addresses,
    begin: (address) => {
      if (address === "broken") throw new Error("no such key")
      const socket = new Socket()
      sockets.set(address, socket)
      return socket
    },
    ready: ready as "connect",
    problem: (socket) =>
      sockets.get(closed) === socket ? new TransportError("target_forbidden", "closed") : null,
    timeoutMs,
    clock,
    signal: closing.signal,
  })
  const settled = result.catch((error) => error)
  const fail = (address: string, code: string) =>
    sockets.get(address)!.emit("error", Object.assign(new Error(`${code} ${address}`), { code }))
  const running = () => [...sockets].filter(([, { destroyed }]) => !destroyed).map(([address]) => address)
  return { clock, closing, sockets, settled, fail, running }
}

test("the next address is tried a quarter of a second after the one before, and both stay in the race", () => {
  const { clock, sockets, running } = start(["a", "b", "c"])
  expect([...sockets.keys()]).toEqual(["a"])
  clock.advance(249)
  expect([...sockets.keys()]).toEqual(["a"])
  clock.advance(1)
  expect([...sockets.keys()]).toEqual(["a", "b"])
  clock.advance(250)
  expect(running()).toEqual(["a", "b", "c"])
})

test("the next address is tried at once when one fails, and the one after it a quarter of a second later", () => {
  const { clock, sockets, fail } = start(["a", "b", "c"])
  clock.advance(200)
  fail("a", "ECONNREFUSED")
  expect([...sockets.keys()]).toEqual(["a", "b"])
  clock.advance(249)
  expect([...sockets.keys()]).toEqual(["a", "b"])
  clock.advance(1)
  expect([...sockets.keys()]).toEqual(["a", "b", "c"])
})

test("the first to connect wins: the others are destroyed, no further one is tried, and no timer is left", async () => {
  const { clock, sockets, settled, running } = start(["a", "b", "c"])
  clock.advance(250)
  sockets.get("b")!.emit("connect")
  expect(await settled).toBe(sockets.get("b"))
  expect(running()).toEqual(["b"])
  expect(clock.timers).toBe(0)
  expect([...sockets.keys()]).toEqual(["a", "b"])
})

test("over TLS the first to connect wins, and its handshake has what is left of the one deadline", async () => {
  const { clock, sockets, settled, running } = start(["a", "b", "c"], { ready: "secureConnect" })
  clock.advance(250)
  sockets.get("a")!.emit("connect")
  expect(running()).toEqual(["a"])
  clock.advance(9749)
  expect(running()).toEqual(["a"])
  clock.advance(1)
  expect(await settled).toMatchObject({ failure: "timeout", message: expect.stringContaining("a, b, c") })
  expect(running()).toEqual([])
})

test("a failed TLS handshake is the outcome: no other address is tried", async () => {
  const { sockets, settled, fail } = start(["a", "b", "c"], { ready: "secureConnect" })
  fail("a", "ECONNREFUSED")
  sockets.get("b")!.emit("connect")
  fail("b", "CERT_HAS_EXPIRED")
  expect(await settled).toMatchObject({ code: "CERT_HAS_EXPIRED" })
  expect([...sockets.keys()]).toEqual(["a", "b"])
})

test.each([
  [["ECONNREFUSED", "ENETUNREACH"], "ECONNREFUSED"],
  [["ENETUNREACH", "ECONNREFUSED"], "ECONNREFUSED"],
  [["ENETUNREACH", "EHOSTUNREACH"], "ENETUNREACH"],
])("of the failures %j the race reports %s: a missing route is a fault of our own network", async (codes, code) => {
  const { settled, fail } = start(["a", "b"])
  fail("a", codes[0]!)
  fail("b", codes[1]!)
  expect(await settled).toMatchObject({ code })
})

const MANY = Array.from({ length: 32 }, (_, i) => `black hole ${i}`)

test("with many addresses that never answer at most four sockets are open at once, and the address behind them is reached", async () => {
  const { clock, sockets, settled, running } = start([...MANY, "live"])
  let most = 0
  while (!sockets.has("live")) {
    clock.advance(250)
    most = Math.max(most, running().length)
  }
  expect(most).toBe(4)
  expect(running()).toEqual([...MANY.slice(-3), "live"])
  sockets.get("live")!.emit("connect")
  expect(await settled).toBe(sockets.get("live"))
  expect(running()).toEqual(["live"])
})

test("an address that was given up for a fifth one counts as a timeout", async () => {
  const { clock, settled, fail } = start(["a", "b", "c", "d", "e"])
  clock.advance(1000)
  for (const address of ["b", "c", "d", "e"]) fail(address, "ECONNREFUSED")
  expect(await settled).toMatchObject({ failure: "timeout", message: "no connection within 1000 ms" })
})

test("with a short deadline four addresses are tried before it, and none is given up", () => {
  const { clock, running } = start(["a", "b", "c", "d", "e"], { timeoutMs: 400 })
  clock.advance(399)
  expect(running()).toEqual(["a", "b", "c", "d"])
})

test("a socket that connected to a forbidden address ends the whole race", async () => {
  const { sockets, settled, clock, running } = start(["a", "b", "c"], { closed: "a" })
  clock.advance(250)
  sockets.get("a")!.emit("connect")
  expect(await settled).toMatchObject({ failure: "target_forbidden" })
  expect(running()).toEqual([])
  expect(sockets.size).toBe(2)
})

test("an abort destroys the open sockets and tries no further address", async () => {
  const { closing, clock, sockets, settled, running } = start(["a", "b", "c"])
  clock.advance(250)
  closing.abort()
  expect(await settled).toMatchObject({ message: "closed by shutdown" })
  expect(running()).toEqual([])
  expect(sockets.size).toBe(2)
  expect(clock.timers).toBe(0)
})

test("an address whose socket cannot be created ends the race", async () => {
  const { clock, settled, running } = start(["a", "broken", "c"])
  clock.advance(250)
  expect(await settled).toMatchObject({ message: "no such key" })
  expect(running()).toEqual([])
  expect(clock.timers).toBe(0)
})

import { getEventListeners, once } from "node:events"
import { Socket } from "node:net"
import { expect, test, vi } from "vitest"
import { destroyOnAbort } from "./destroy-on-abort.ts"

const make = (signal: AbortSignal) =>
  destroyOnAbort(
    signal,
    new Socket().on("error", () => {}),
  )

test("a signal destroys every open socket, with one listener for all", () => {
  const closing = new AbortController()
  const sockets = [1, 2, 3].map(() => make(closing.signal))
  expect(getEventListeners(closing.signal, "abort")).toHaveLength(1)
  expect(sockets.map(({ destroyed }) => destroyed)).toEqual([false, false, false])
  closing.abort()
  expect(sockets.map(({ destroyed }) => destroyed)).toEqual([true, true, true])
})

test("a socket that is added after the abort is destroyed at once", () => {
  const closing = new AbortController()
  make(closing.signal)
  closing.abort()
  expect(make(closing.signal).destroyed).toBe(true)
  expect(make(AbortSignal.abort()).destroyed).toBe(true)
})

test("a socket that has closed is forgotten", async () => {
  const closing = new AbortController()
  const socket = make(closing.signal).destroy()
  await once(socket, "close")
  const destroy = vi.spyOn(socket, "destroy")
  closing.abort()
  expect(destroy).not.toHaveBeenCalled()
})

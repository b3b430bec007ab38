import { once } from "node:events"
import { existsSync } from "node:fs"
import { connect } from "node:net"
import { expect, onTestFinished, test } from "vitest"
import { Program } from "../process.ts"

/** Connects, and gives the moment at which the server is gone. */
async function hold(url: string): Promise<{ readonly gone: Promise<unknown> }> {
  const { port } = new URL(url)
  const socket = connect(Number(port), "127.0.0.1").on("error", () => {})
  await once(socket, "connect")
  onTestFinished(() => void socket.destroy())
  return { gone: new Promise((resolve) => socket.resume().on("close", resolve)) }
}

test("the servers of a process that is killed end with it, and their folders are removed", async () => {
  const holder = Program.start(new URL("./holder-child.ts", import.meta.url), [])
  onTestFinished(() => void holder.kill())
  const { postgres, redis, folder } = JSON.parse(await holder.line(/^\{/))
  const held = [await hold(postgres), await hold(redis)]
  expect(existsSync(folder)).toBe(true)
  await holder.kill()
  await Promise.all(held.map(({ gone }) => gone))
  await expect.poll(() => existsSync(folder), { timeout: 15_000 }).toBe(false)
})

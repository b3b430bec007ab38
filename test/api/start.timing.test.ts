/** How long it takes until a new server can be used. */
import { expect, onTestFinished, test } from "vitest"
import { temporaryFolder } from "../support/harness.ts"
import { Program } from "../support/process.ts"

const MAIN = new URL("../../src/cli/main.ts", import.meta.url)
const LISTENS = /"msg":"server \d+ listens on (http:\/\/[^,]+),/

/** From nothing to the first healthy answer, with a file that has to be made. */
async function startMs(): Promise<number> {
  const began = performance.now()
  const program = Program.start(MAIN, ["serve"], { under: ["env", "-C", temporaryFolder(), "PORT=0"] })
  onTestFinished(async () => void (await program.kill()))
  const [, address] = LISTENS.exec(await program.line(LISTENS))!
  expect((await fetch(`${address}/api/v1/health`)).status).toBe(200)
  const tookMs = performance.now() - began
  program.process.kill("SIGTERM")
  await program.ended
  return tookMs
}

test("from nothing to healthy on SQLite in under a second", async () => {
  // The first one leaves behind what it compiled: an installed package is compiled too.
  await startMs()
  const times = [await startMs(), await startMs(), await startMs()]
  expect(Math.min(...times)).toBeLessThan(1000)
})

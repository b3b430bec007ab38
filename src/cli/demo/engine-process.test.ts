/** An engine that has ended takes nothing more, and says so at once. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { message } from "./endpoints.ts"
import { EngineProcess } from "./engine-process.ts"

test("what is sent at and after its end is refused with the reason", async () => {
  const folder = mkdtempSync(join(tmpdir(), "posthorn-engine-"))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const engine = new EngineProcess(join(folder, "posthorn.db"), () => {})
  await engine.ready
  process.kill(engine.pid, "SIGKILL")
  const refusal = "the engine's process ended by itself"
  await expect(engine.send(message(1))).rejects.toThrow(refusal)
  await expect(engine.send(message(2))).rejects.toThrow(refusal)
})

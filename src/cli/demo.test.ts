/** `posthorn demo` as CI runs it: the real command in a process of its own, its output in a pipe. */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { expect, onTestFinished, test } from "vitest"
import { inheritedEnvironment } from "../../test/support/process.ts"

const MAIN = new URL("./main.ts", import.meta.url).pathname
/** It takes ten seconds; a busy machine may take longer. */
const PATIENCE_MS = 180_000

/** With a folder for temporary files of its own, so that what is left behind shows. */
function start(...flags: string[]): { child: ChildProcess; folder: string; complaint(): string } {
  const folder = mkdtempSync(join(tmpdir(), "posthorn-"))
  const env = { ...inheritedEnvironment(), TMPDIR: folder, FORCE_COLOR: undefined }
  const child = spawn(process.execPath, [MAIN, "demo", ...flags], { env })
  onTestFinished(() => {
    child.kill("SIGKILL")
    rmSync(folder, { recursive: true, force: true })
  })
  let complaint = ""
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaint += text
  })
  return { child, folder, complaint: () => complaint }
}

/** Resolves when the output so far fits, with the output. */
function printed(child: ChildProcess, pattern: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = ""
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      output += text
      if (pattern.test(output)) resolve(output)
    })
    child.once("exit", () => reject(new Error(`ended without printing ${pattern}: ${output}`)))
  })
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test("the demo kills the engine, replays the dead letters, and the books balance", {
  timeout: PATIENCE_MS,
}, async () => {
  const { child, folder } = start("--keep")
  const [output, [code]] = await Promise.all([printed(child, /The file: .*\n/), once(child, "exit")])
  expect(output).toContain("The books balance: nothing lost, nothing taken twice, order kept.")
  expect(code).toBe(0)
  expect(output).toMatch(/^ accepted +4 messages for 26 deliveries; 1 repeat known by its key$/m)
  expect(output).toMatch(/^ delivered +26: /m)
  expect(output).toMatch(/^ dead +0 left; \d+ were \(.*\d exhausted.*\), \d+ replayed$/m)
  expect(output).toMatch(/^ order +ledger took #1 #2 #3 #4/m)
  expect(output).toContain("kill -9:")
  expect(output).toContain("HTTP 429: slow down; again in 2.0 s")
  expect(output).toMatch(
    /outage +breaker opens after 3 failures: no request for \d\.\d s\n(.*\n)*.*outage +breaker half-open: one request as a probe\n(.*\n)*.*outage +the probe succeeded: the others follow, 1 a second\n/,
  )
  expect(output).not.toContain("\x1b")

  const [name] = readdirSync(folder)
  const db = new DatabaseSync(join(folder, name!, "posthorn.db"))
  onTestFinished(() => db.close())
  expect(db.prepare("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" })
  expect(db.prepare("SELECT status, count(*) AS n FROM webhook_deliveries GROUP BY status").all()).toEqual([
    { status: "delivered", n: 26 },
  ])
})

test("Ctrl-C ends the demo with 130, its engine with it, and leaves nothing behind", {
  timeout: PATIENCE_MS,
}, async () => {
  const { child, folder } = start()
  const output = await printed(child, /send #1.*\n/)
  const pid = Number(/process (\d+)/.exec(output)?.[1])
  expect(isAlive(pid)).toBe(true)
  expect(readdirSync(folder)).toHaveLength(1)
  child.kill("SIGINT")
  const [code] = await once(child, "exit")
  expect(code).toBe(130)
  expect(readdirSync(folder)).toEqual([])
  await expect.poll(() => isAlive(pid)).toBe(false)
})

test("an engine that ends by itself ends the demo with an error", { timeout: PATIENCE_MS }, async () => {
  const { child, folder, complaint } = start()
  const output = await printed(child, /send #1.*\n/)
  process.kill(Number(/process (\d+)/.exec(output)?.[1]), "SIGKILL")
  const [code] = await once(child, "close")
  expect({ code, said: complaint() }).toEqual({
    code: 1,
    said: "posthorn: the engine's process ended by itself\n",
  })
  expect(readdirSync(folder)).toEqual([])
})

test("a reader that has seen enough ends the demo in silence", { timeout: PATIENCE_MS }, async () => {
  const { child, folder, complaint } = start()
  await printed(child, /posthorn demo on .*\n/)
  child.stdout?.destroy()
  const [code] = await once(child, "close")
  expect({ code, said: complaint() }).toEqual({ code: 141, said: "" })
  expect(readdirSync(folder)).toEqual([])
})

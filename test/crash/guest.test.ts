/** A sync fails while another process has the file open: that process keeps SQLite's count of the pages that were copied. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { openSqliteStore } from "../../src/store/sqlite/store.ts"
import { Campaign } from "../kill/campaign.ts"
import { seeded } from "../kill/random.ts"
import { temporaryFolder } from "../support/combination.ts"
import { Program } from "../support/process.ts"
import { checkLogKept, LONG_LOG_PAGES } from "./crash.ts"
import { Recorder } from "./trace.ts"

const GUEST = new URL("./guest-child.ts", import.meta.url)
const REFUSED = /a sync of .* failed, and another process still has the file open: end every process/

/** A process of its own that has the file open and does not deliver. */
async function openGuest(file: string): Promise<Program> {
  const guest = Program.start(GUEST, [`sqlite:${file}`])
  onTestFinished(async () => void (await guest.kill()))
  await guest.line(/^open$/)
  return guest
}

test.for([
  { name: "database", file: "", at: 6, how: "dropped", end: "exit" },
  { name: "log", file: "-wal", at: 50, how: "dropped", end: "throw" },
] as const)("sync $at of the $name fails beside a guest: a restart is refused until the guest is closed, and then nothing is lost", {
  timeout: 180_000,
}, async ({ end, ...failure }) => {
  const campaign = await Campaign.start(seeded(failure.at))
  onTestFinished(() => campaign.close())
  const recorder = new Recorder()
  onTestFinished(() => recorder.close())
  const guest = await openGuest(campaign.file)
  const under = recorder.command(campaign.file, failure)
  const program = campaign.launch(under, ["--long-log", String(LONG_LOG_PAGES), "--lost", end])
  await program.ended
  checkLogKept(recorder.steps(), program.stderr)
  await campaign.checkCrashed()
  await expect(campaign.finish()).rejects.toThrow(REFUSED)
  guest.process.kill("SIGTERM")
  expect(await guest.ended, guest.stderr).toEqual({ code: 0, signal: null })
  expect(existsSync(`${campaign.file}-wal`)).toBe(true)
  await campaign.finish(2)
  await campaign.checkOutcome()
  expect(existsSync(`${campaign.file}-failed`)).toBe(false)
})

test("a delivering process that was killed beside a guest starts again beside it", async () => {
  const path = join(temporaryFolder(), "posthorn.db")
  const open = () => openSqliteStore({ path, own: true, onLost() {} })
  await openGuest(path)
  const owner = await open()
  await owner.kill()
  const next = await open()
  await next.close()
})

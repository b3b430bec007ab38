/** Fault 4: a sync fails. Nobody knows then what is on the disk, so the process must not go on as if it did. */
import { expect, onTestFinished, test } from "vitest"
import { Campaign, SENDERS } from "../kill/campaign.ts"
import { seeded } from "../kill/random.ts"
import type { Program } from "../support/process.ts"
import { withSyncFault } from "./strace.ts"

async function startCampaign(seed: number): Promise<Campaign> {
  const campaign = await Campaign.start(seeded(seed))
  onTestFinished(() => campaign.close())
  return campaign
}

async function expectClearEnd(program: Program, problem: RegExp): Promise<void> {
  const { code, signal } = await program.ended
  expect(signal).toBeNull()
  expect(code).not.toBe(0)
  expect(program.stderr).toMatch(problem)
}

test.for([
  10, 11, 12,
])("when sync %i fails every send in flight is refused with store_failed, the process ends, and a restart recovers", async (at) => {
  const campaign = await startCampaign(at)
  await campaign.finish(1)
  const program = campaign.launch(withSyncFault({ fault: "error=EIO", at }))
  await expectClearEnd(
    program,
    /PosthornError: the database file failed \(EIO: i\/o error, fdatasync\): stopping; a restart recovers from the file/,
  )
  await campaign.checkCrashed()
  // Each sender always has a send in flight, and every send gets an answer.
  expect(program.lines).toContain("ready")
  const codes = campaign.refused.map((line) => line.split(" ").at(-1))
  expect(codes).toEqual(new Array(SENDERS).fill("store_failed"))
  await campaign.finish()
  await campaign.checkOutcome()
})

test.for([
  1, 5,
])("when sync %i of a new file fails it is not opened, the process ends with a clear error, and a restart recovers", async (at) => {
  const campaign = await startCampaign(at)
  const program = campaign.launch(withSyncFault({ fault: "error=EIO", at }))
  await expectClearEnd(
    program,
    /PosthornError: .* (failed \(disk I\/O error|cannot be opened as a Posthorn database: disk I\/O error|cannot be read or created: EIO)/,
  )
  expect(program.lines).toEqual([])
  await campaign.finish(1)
  await campaign.checkOutcome()
})

test("when the file cannot be synced while the log is copied into it, the process ends, and a restart recovers", {
  timeout: 120_000,
}, async () => {
  const campaign = await startCampaign(200)
  await campaign.finish(1)
  const program = campaign.launch(withSyncFault({ fault: "error=EIO", at: 1, file: campaign.file }))
  await expectClearEnd(
    program,
    /PosthornError: the database file failed \(disk I\/O error.*\): stopping; a restart/,
  )
  await campaign.checkCrashed()
  await campaign.finish()
  await campaign.checkOutcome()
})

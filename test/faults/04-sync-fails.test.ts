/** Fault 4: a sync fails. Nobody knows then what is on the disk, so the process must not go on as if it did. */
import { expect, onTestFinished, test } from "vitest"
import { Campaign } from "../kill/campaign.ts"
import { seeded } from "../kill/random.ts"
import type { Program } from "../support/process.ts"
import { withSyncFault } from "./strace.ts"

async function startCampaign(seed: number): Promise<Campaign> {
  const campaign = await Campaign.start(seeded(seed))
  onTestFinished(() => campaign.close())
  return campaign
}

/** A file with its tables, endpoints and first messages. */
async function begin(campaign: Campaign): Promise<void> {
  const program = campaign.launch()
  await program.line(/^accepted/)
  await program.kill()
}

async function expectClearEnd(program: Program): Promise<void> {
  const { code, signal } = await program.ended
  expect(signal).toBeNull()
  expect(code).not.toBe(0)
  expect(program.stderr).toContain("the database file failed (disk I/O error, code 1034): stopping")
  expect(program.stderr).toContain("a restart recovers from the file")
  expect(program.stderr).toContain("store_failed")
}

test.for([4, 7, 10, 13, 16])(
  "when sync %i fails every send under way is refused with store_failed, the process ends, and a restart recovers",
  async (at) => {
    const campaign = await startCampaign(at)
    await begin(campaign)
    const program = campaign.launch(withSyncFault({ fault: "error=EIO", at }))
    await expectClearEnd(program)
    campaign.checkCopy()
    // Its senders always have a send under way: none may be left without an answer.
    if (program.lines.includes("ready"))
      expect(campaign.refused.map((line) => line.split(" ").at(-1))).toEqual(new Array(8).fill("store_failed"))
    await campaign.drain()
    campaign.checkOutcome()
  },
)

test("when the first sync fails the file is not opened, the process ends with a clear error, and a restart recovers", async () => {
  const campaign = await startCampaign(1)
  const program = campaign.launch(withSyncFault({ fault: "error=EIO", at: 1 }))
  await expectClearEnd(program)
  expect(program.lines).toEqual([])
  await begin(campaign)
  await campaign.drain()
  campaign.checkOutcome()
})

test("a sync that fails while the log is written back loses nothing: the log keeps it", async () => {
  const campaign = await startCampaign(2)
  await begin(campaign)
  const program = campaign.launch(withSyncFault({ fault: "error=EIO", at: 1, file: campaign.file }))
  await program.line(/^accepted 0 100 /)
  await program.kill()
  campaign.checkCopy()
  await campaign.drain()
  expect(campaign.checkOutcome().messages).toBeGreaterThan(100)
})

/** Fault 3: the process is killed at its n-th sync, for every n from the first table on. */
import { expect, onTestFinished, test } from "vitest"
import { Campaign } from "../kill/campaign.ts"
import { seeded } from "../kill/random.ts"
import { killedAtWriteTo, withSyncFault } from "./strace.ts"

const KILLED = { code: null, signal: "SIGKILL" }

async function startCampaign(seed: number): Promise<Campaign> {
  const campaign = await Campaign.start(seeded(seed))
  onTestFinished(() => campaign.close())
  return campaign
}

// The file, its log, its tables, its owner, its key: what follows are commits like those of the next test.
test.for([
  1, 2, 3, 4, 5, 6, 7, 8, 9,
])("killed at sync %i of a new file, the next start goes on from what is there", async (at) => {
  const campaign = await startCampaign(at)
  expect(await campaign.launch(withSyncFault({ fault: "signal=KILL", at })).ended).toEqual(KILLED)
  await campaign.checkCrashed()
  await campaign.finish(1)
  expect((await campaign.checkOutcome()).messages).toBeGreaterThan(0)
})

test("killed at one sync after another of a start that sends, nothing accepted is missing and no message is without its deliveries", async () => {
  const campaign = await startCampaign(100)
  await campaign.finish(1)
  for (const at of [4, 5, 6, 7, 8, 10, 12]) {
    expect(await campaign.launch(withSyncFault({ fault: "signal=KILL", at })).ended).toEqual(KILLED)
    await campaign.checkCrashed()
  }
  await campaign.finish()
  expect((await campaign.checkOutcome()).messages).toBeGreaterThan(8)
}, 60_000)

test("killed while the log is written back into the file, nothing accepted is missing", {
  timeout: 120_000,
}, async () => {
  const campaign = await startCampaign(200)
  await campaign.finish(1)
  const under = withSyncFault({ fault: "signal=KILL", at: 1, file: campaign.file })
  // The first life fills the log; the second finds it full, and is killed as soon as it writes it back.
  for (const _life of ["first", "second"]) {
    expect(await campaign.launch(under).ended).toEqual(KILLED)
    await campaign.checkCrashed()
  }
  await campaign.finish()
  expect((await campaign.checkOutcome()).messages).toBeGreaterThan(8)
})

test("killed while the key is made, the next start makes one", async () => {
  const campaign = await startCampaign(300)
  const program = campaign.launch(killedAtWriteTo(`${campaign.file}.key`))
  // A key that is written under another name first is never seen half-made: then nothing kills the program here.
  await Promise.race([program.ended, program.line(/^accepted/).catch(() => {})])
  await program.kill()
  await campaign.finish(1)
  await campaign.checkOutcome()
})

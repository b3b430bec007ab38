/** Fault 3: the process is killed at its n-th sync, for every n from the first table on. */
import { expect, onTestFinished, test } from "vitest"
import { Campaign } from "../kill/campaign.ts"
import { seeded } from "../kill/random.ts"
import { withSyncFault } from "./strace.ts"

const KILLED = { code: null, signal: "SIGKILL" }

async function startCampaign(seed: number): Promise<Campaign> {
  const campaign = await Campaign.start(seeded(seed))
  onTestFinished(() => campaign.close())
  return campaign
}

// The first fifteen or so make the file, the tables and the endpoints; then come the sends.
test.for(upTo(20))("killed at sync %i of a new file, the next start goes on from what is there", async (at) => {
  const campaign = await startCampaign(at)
  expect(await campaign.launch(withSyncFault({ fault: "signal=KILL", at })).ended).toEqual(KILLED)
  campaign.checkCopy()
  const next = campaign.launch()
  await next.line(/^accepted/)
  await next.kill()
  await campaign.drain()
  campaign.checkOutcome()
})

test("killed at sync 1, 2, 3 … of one start after another, nothing accepted is missing and no message is without its deliveries", async () => {
  const campaign = await startCampaign(100)
  for (const at of upTo(14)) {
    expect(await campaign.launch(withSyncFault({ fault: "signal=KILL", at })).ended).toEqual(KILLED)
    campaign.checkCopy()
  }
  await campaign.drain()
  expect(campaign.checkOutcome().messages).toBeGreaterThan(0)
}, 60_000)

test("killed while the log is written back into the file, nothing accepted is missing", async () => {
  const campaign = await startCampaign(200)
  const first = campaign.launch()
  await first.line(/^accepted/)
  await first.kill()
  const under = withSyncFault({ fault: "signal=KILL", at: 1, file: campaign.file })
  // The first life fills the log; the second finds it full, and is killed as soon as it writes it back.
  for (const _life of upTo(2)) {
    expect(await campaign.launch(under).ended).toEqual(KILLED)
    campaign.checkCopy()
  }
  await campaign.drain()
  expect(campaign.checkOutcome().messages).toBeGreaterThan(50)
})

function upTo(last: number): number[] {
  return Array.from({ length: last }, (_, i) => i + 1)
}

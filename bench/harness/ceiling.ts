/** How many requests per second the receiver takes at most: from raw sockets that write prepared ones and do nothing else. */
import { prepareDelivery } from "./prepared.ts"
import { RawClient } from "./raw-client.ts"
import { checkTally, type Receiver } from "./receiver.ts"
import { median } from "./statistics.ts"
import { VoidRun } from "./void.ts"

/** Before so many it is half as fast. */
const WARMUP = 10_000
const ROUNDS = 5
const COUNT = 1500

export async function measureCeiling(receiver: Receiver): Promise<number> {
  const client = await RawClient.open(prepareDelivery(receiver.origin))
  try {
    await round(receiver, client, WARMUP)
    const rounds: number[] = []
    for (let i = 0; i < ROUNDS; i++) rounds.push(await round(receiver, client, COUNT))
    return median(rounds)
  } finally {
    client.close()
  }
}

/**
 * As many per second as it would take with all of a core. It used 0.98 of one on a quiet machine, and half of one where others
 * wanted the processor: what came there was less than the bare loop reaches elsewhere.
 */
async function round(receiver: Receiver, client: RawClient, count: number): Promise<number> {
  const expected = await receiver.expect(count)
  const startedAt = performance.now()
  await client.post(expected.from, count)
  const { tally, busyShare } = await expected.books()
  // From `expect` to `books`, as its share of a core is.
  const seconds = (performance.now() - startedAt) / 1000
  checkTally(tally)
  if (busyShare === 0) throw new VoidRun("the receiver's processor time is not told on this system")
  return count / seconds / busyShare
}

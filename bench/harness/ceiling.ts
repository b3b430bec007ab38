/** The receiver's ceiling in requests per second, measured with raw sockets that only write prepared requests. */
import { prepareDelivery } from "./prepared.ts"
import { RawClient } from "./raw-client.ts"
import { checkTally, type Receiver } from "./receiver.ts"
import { median } from "./statistics.ts"
import { VoidRun } from "./void.ts"

/** Warm-up: before this number of requests the receiver is half as fast. */
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

/** Scaled to a whole core: the receiver used 0.98 of a core on a quiet machine, and half of one on a busy one. */
async function round(receiver: Receiver, client: RawClient, count: number): Promise<number> {
  const expected = await receiver.expect(count)
  const startedAt = performance.now()
  await client.post(expected.from, count)
  const { tally, busyShare } = await expected.books()
  // From `expect` to `books`, as the receiver's share of a core is measured.
  const seconds = (performance.now() - startedAt) / 1000
  checkTally(tally)
  if (busyShare === 0) throw new VoidRun("the receiver's processor time is not told on this system")
  return count / seconds / busyShare
}

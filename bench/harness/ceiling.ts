/** How many requests per second the receiver takes at most: from raw sockets that write prepared ones and do nothing else. */
import { prepareDelivery } from "./prepared.ts"
import { RawClient } from "./raw-client.ts"
import { checkTally, type Receiver } from "./receiver.ts"
import { timed } from "./rounds.ts"

/** Before so many it is half as fast. */
const WARMUP = 10_000
const ROUNDS = 5
const COUNT = 1500

/** Of the best round: on a machine that is disturbed each request costs more, too. */
export async function measureCeiling(receiver: Receiver): Promise<number> {
  const client = await RawClient.open(prepareDelivery(receiver.origin))
  try {
    await round(receiver, client, WARMUP)
    let ceiling = 0
    for (let i = 0; i < ROUNDS; i++) ceiling = Math.max(ceiling, await round(receiver, client, COUNT))
    return ceiling
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
  const { perSecond } = await timed(count, () => client.post(expected.from, count))
  const { tally, busyShare } = await expected.books()
  checkTally(tally)
  return perSecond / busyShare
}

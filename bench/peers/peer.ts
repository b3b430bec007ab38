/** Another queue with the same load as Posthorn: the same senders, payloads and receiver, from enqueue to completion. */
import type { Bench } from "../harness/bench.ts"
import { payloadOf } from "../harness/payload.ts"
import { type Round, timed } from "../harness/rounds.ts"
import { sendAll } from "../harness/senders.ts"
import { inTime } from "../harness/void.ts"

export interface Peer {
  /** Runs this number of jobs, with `batch` in each call. */
  run(count: number, batch: number): Promise<Round>
  close(): Promise<void>
}

export interface PeerQueue {
  /** One call; resolves when its jobs are accepted. */
  add(payloads: readonly object[]): Promise<unknown>
  /** Calls the listener for each completed job. */
  onCompleted(listener: () => void): void
}

export async function runPeer(bench: Bench, count: number, batch: number, queue: PeerQueue): Promise<Round> {
  const expected = await bench.receiver.expect(count)
  const completed = new Promise<void>((resolve) => {
    let done = 0
    queue.onCompleted(() => {
      if (++done === count) resolve()
    })
  })
  return timed(count, async () => {
    await sendAll(expected.from, count, batch, (ordinals) => queue.add(ordinals.map(payloadOf)))
    await expected.complete()
    await inTime(completed, () => "jobs that were sent were not completed")
  })
}

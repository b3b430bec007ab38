/** Concurrent senders: each makes its next call when the last one has resolved. */
import { SENDERS } from "./settings.ts"

/** Sends numbers from `from` on, `batch` in each call. Resolves when all calls have resolved. */
export async function sendAll(
  from: number,
  count: number,
  batch: number,
  call: (ordinals: readonly number[]) => Promise<unknown>,
): Promise<void> {
  const end = from + count
  let next = from
  const sender = async () => {
    while (next < end) {
      const first = next
      next = Math.min(end, first + batch)
      await call(Array.from({ length: next - first }, (_, i) => first + i))
    }
  }
  await Promise.all(Array.from({ length: SENDERS }, sender))
}

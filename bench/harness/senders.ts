/** Many senders at once, each of which makes its next call when its last is answered. */
import { SENDERS } from "./settings.ts"

/** Numbers from `from` on, so many in each call; resolves when all calls are answered. */
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

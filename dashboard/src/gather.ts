/** Gathers items into at most four batches a second. */
const PERIOD_MS = 250
/** The oldest are left out of a batch. */
const MOST = 500

export function gather<T>(give: (batch: readonly T[]) => void): { add(one: T): void; end(): void } {
  let batch: T[] = []
  let timer: ReturnType<typeof setTimeout> | null = null
  return {
    add(one) {
      batch.push(one)
      if (batch.length > MOST) batch.shift()
      timer ??= setTimeout(() => {
        const ready = batch
        batch = []
        timer = null
        give(ready)
      }, PERIOD_MS)
    },
    end() {
      if (timer !== null) clearTimeout(timer)
      batch = []
    },
  }
}

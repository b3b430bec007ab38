/** Optimistic concurrency: a change is computed from the stored row and saved if that row is unchanged. */
import { hasCode } from "../core/errors.ts"

/** Each failed try means that another caller's change was saved, so 50 concurrent changes all succeed. */
const MOST_TRIES = 50

/** Tries again on a conflict with a concurrent change. A conflict that names a field is an error of the caller. */
export async function readAndSave<T>(attempt: () => Promise<T>): Promise<T> {
  for (let left = MOST_TRIES; ; left--) {
    try {
      return await attempt()
    } catch (error) {
      const isStale = hasCode(error, "conflict") && error.field === undefined
      if (!isStale || left === 1) throw error
    }
  }
}

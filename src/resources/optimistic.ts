/** Changes that are computed from what is there, while others change it too. */
import { PosthornError } from "../core/errors.ts"

/** Each try that was in vain let somebody else's change through: so many at once all succeed. */
const MOST_TRIES = 50

/** Reads, computes and saves; and once more, if somebody else saved in between. A conflict that names a field is a true one. */
export async function readAndSave<T>(attempt: () => Promise<T>): Promise<T> {
  for (let left = MOST_TRIES; ; left--) {
    try {
      return await attempt()
    } catch (error) {
      const isStale = error instanceof PosthornError && error.code === "conflict" && error.field === undefined
      if (!isStale || left === 1) throw error
    }
  }
}

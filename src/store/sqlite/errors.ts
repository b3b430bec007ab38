/** Classifies SQLite's errors: the caller's mistake, transient, or a file that has failed. */
import { PosthornError } from "../../core/errors.ts"

const BUSY = 5
const IOERR = 10
const CORRUPT = 11
const FULL = 13
const NOTADB = 26
/** The shared-memory index could not grow: the disk is full. */
const IOERR_SHMSIZE = 4874
/** Primary key and unique index. */
const CONSTRAINTS = [1555, 2067]

export function isBusy(error: unknown): boolean {
  return (sqliteCode(error) & 0xff) === BUSY
}

function sqliteCode(error: unknown): number {
  return (error as { errcode?: number } | null)?.errcode ?? 0
}

/** Writes a row that a unique index may refuse. */
export function orRefuse<T>(refusal: () => PosthornError, write: () => T): T {
  try {
    return write()
  } catch (error) {
    throw CONSTRAINTS.includes(sqliteCode(error)) ? refusal() : error
  }
}

/** Whether the error is one of the file or its lock, which fails the whole transaction. */
export function isFileTrouble(error: unknown): boolean {
  return [BUSY, IOERR, CORRUPT, FULL, NOTADB].includes(sqliteCode(error) & 0xff)
}

export function toPosthornError(error: unknown): PosthornError {
  if (error instanceof PosthornError) return error
  const extended = sqliteCode(error)
  const primary = extended & 0xff
  if (primary === FULL || extended === IOERR_SHMSIZE) {
    return new PosthornError(
      "store_full",
      "the disk is full: nothing was written; free some space and try again",
      { cause: error },
    )
  }
  if (primary === BUSY) {
    return new PosthornError(
      "store_unavailable",
      "another process holds the database's write lock; try again",
      { cause: error },
    )
  }
  // After a failed sync the state on the disk is unknown until a restart reads the file again.
  if (primary === IOERR || primary === CORRUPT || primary === NOTADB)
    return fileFailed(`${(error as Error).message}, code ${extended}`, error)
  return new PosthornError("store_unavailable", `the database refused: ${(error as Error).message}`, {
    cause: error,
  })
}

export function fileFailed(problem: string, cause: unknown): PosthornError {
  const text = `the database file failed (${problem}): stopping; a restart recovers from the file`
  return new PosthornError("store_failed", text, { cause })
}

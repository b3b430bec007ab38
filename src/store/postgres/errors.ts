/** Classifies PostgreSQL's errors: the caller's mistake, transient, or for an operator to repair. */
import { PosthornError } from "../../core/errors.ts"

const UNIQUE_VIOLATION = "23505"
const DISK_FULL = "53100"
const TEXT_WITH_NUL = "22021"
const LOCK_TIMEOUT = "55P03"
const TRY_AGAIN = ["40001", "40P01"]
const NO_SUCH_TABLE = "42P01"
const NO_SUCH_SCHEMA = "3F000"
const NOT_LET_IN = "28000"

/** Classes of SQLSTATE: connection exceptions, insufficient resources, operator intervention that ends the connection. */
const TRANSIENT = /^(08|53|57P)/
const CANCELED = "57014"
/** A standby, or a primary that was demoted. */
const READ_ONLY = "25006"

const AT_OPENING: { readonly [code: string]: string } = {
  [READ_ONLY]: "the server takes no writes, it is read-only (a standby?); give the URL of the primary",
  "28P01": "the password is wrong",
  "3D000": "there is no such database; create it first",
  "42501":
    "the user may not make or use Posthorn's schema here; grant it CREATE on the database, or make it the owner of the schema",
  "57P03": "the server is starting up or shutting down; try again",
  "53300": "the server has no connection left; raise max_connections or put PgBouncer before it",
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === "string" ? code : ""
}

/** Whether the server sent a SQLSTATE. Otherwise the connection failed. */
function isFromServer(error: unknown): boolean {
  return /^[0-9A-Z]{5}$/.test(codeOf(error))
}

/** The connection or the server failed. */
export function isConnectionTrouble(error: unknown): boolean {
  if (error instanceof PosthornError) return false
  const code = codeOf(error)
  // A bug, not a failed connection.
  if (error instanceof TypeError || error instanceof RangeError) return false
  if (!isFromServer(error)) return error instanceof Error
  return (TRANSIENT.test(code) && code !== DISK_FULL) || code === READ_ONLY
}

/** As the server reports it for a write. */
export function readOnlyError(): Error {
  return Object.assign(new Error("the server is read-only"), { code: READ_ONLY })
}

export function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.message === "Query read timeout"
}

/** No connection of the pool became free: nothing was sent to the server. */
export function isPoolExhausted(error: unknown): boolean {
  return error instanceof Error && error.message === "timeout exceeded when trying to connect"
}

/** The statement lost a race and wrote nothing: a retry may succeed. */
export function mayTryAgain(error: unknown): boolean {
  return TRY_AGAIN.includes(codeOf(error)) || isStalePlan(error)
}

/** A newer program added a column after this connection prepared the statement. On another connection it works. */
export function isStalePlan(error: unknown): boolean {
  return codeOf(error) === "0A000" && /cached plan/.test((error as Error).message)
}

export function isUniqueViolation(error: unknown): boolean {
  return codeOf(error) === UNIQUE_VIOLATION
}

/** A unique index or a missing partition, among others: callers answer with a conflict, or mend it and try again. */
export function isConstraintViolation(error: unknown): boolean {
  return codeOf(error).startsWith("23")
}

export function isLockTimeout(error: unknown): boolean {
  return codeOf(error) === LOCK_TIMEOUT
}

/** An operator or a limit of the server stopped the statement. */
export function isCanceled(error: unknown): boolean {
  return codeOf(error) === CANCELED
}

export function isMissingTable(error: unknown): boolean {
  return codeOf(error) === NO_SUCH_TABLE
}

/** There is no partition for the row. */
export function isMissingPartition(error: unknown): boolean {
  return codeOf(error) === "23514" && /no partition of relation/.test((error as Error).message)
}

/** Writes a row that a unique index may refuse. */
export async function orRefuse<T>(refusal: () => PosthornError, write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    throw isUniqueViolation(error instanceof PosthornError ? error.cause : error) ? refusal() : error
  }
}

export function toPosthornError(error: unknown): PosthornError {
  if (error instanceof PosthornError) return error
  const { message } = error as Error
  const code = codeOf(error)
  if (code === DISK_FULL) {
    const text = "PostgreSQL's disk is full: nothing was written; free some space and try again"
    return new PosthornError("store_full", text, { cause: error })
  }
  if (code === TEXT_WITH_NUL)
    return new PosthornError("invalid_input", "text cannot contain the character NUL (\\u0000)", {
      cause: error,
    })
  if (code === NO_SUCH_TABLE || code === NO_SUCH_SCHEMA) {
    const text = `Posthorn's tables are not in the database of this connection (${message}): use the same database`
    return new PosthornError("store_unavailable", text, { cause: error })
  }
  if (code === READ_ONLY) {
    const text = "PostgreSQL takes no writes here, it is read-only (a standby?): give the URL of the primary"
    return new PosthornError("store_unavailable", text, { cause: error })
  }
  if (code === LOCK_TIMEOUT) {
    const text = "another transaction holds what this needs, such as the same idempotency key: try again"
    return new PosthornError("store_unavailable", text, { cause: error })
  }
  if (isPoolExhausted(error)) {
    const text = "all of this process's connections to PostgreSQL are busy: try again"
    return new PosthornError("store_unavailable", text, { cause: error })
  }
  const text = isConnectionTrouble(error)
    ? `PostgreSQL cannot be reached (${message}): nothing is lost; try again`
    : `PostgreSQL refused: ${message}`
  return new PosthornError("store_unavailable", text, { cause: error })
}

/** While opening: one sentence that says what to repair. `where` is the URL without its password. */
export function toOpeningError(error: unknown, where: string): PosthornError {
  if (error instanceof PosthornError) return error
  const problem = AT_OPENING[codeOf(error)] ?? problemAtOpening(error as Error & { syscall?: string })
  return new PosthornError("store_unavailable", `cannot open ${where}: ${problem}`, {
    field: "store",
    cause: error,
  })
}

function problemAtOpening(error: Error & { syscall?: string }): string {
  const code = codeOf(error)
  // The message says why: pg_hba.conf has no rule, the user does not exist, or it may not log in.
  if (code === NOT_LET_IN)
    return `the server does not let this user in (${error.message}): see to the user and to pg_hba.conf`
  if (error.syscall === "open" || code === "EISDIR")
    return `a file that the URL names (sslrootcert, sslcert or sslkey) cannot be read: ${error.message}`
  const said = error.message === "" ? code : error.message
  return isFromServer(error) ? said : `${said}; is PostgreSQL running there, and are host and port right?`
}

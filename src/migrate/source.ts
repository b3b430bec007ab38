/** The SQLite file that is moved: locked against delivering processes, read, and finally marked as moved. */
import { createHash } from "node:crypto"
import { existsSync, readFileSync, realpathSync } from "node:fs"
import type { SQLInputValue, SQLOutputValue } from "node:sqlite"
import { describe, PosthornError } from "../core/errors.ts"
import { createVault, parseEncryptionKey } from "../core/vault.ts"
import { givenEncryptionKey } from "../key-file.ts"
import { Connection } from "../store/sqlite/connection.ts"
import { recoverFromFailedSync } from "../store/sqlite/failed-sync.ts"
import { markMoved, refuseMoved } from "../store/sqlite/moved.ts"
import { lockOut, type Ownership } from "../store/sqlite/owner.ts"
import { MIGRATIONS } from "../store/sqlite/schema.ts"

export type SourceRow = { readonly [column: string]: SQLOutputValue }

export interface SourceKey {
  /** The fingerprint of the key that encrypts the store's secrets. */
  readonly fingerprint: string
  /** The key, if it is in a file beside the source; null: it is a setting. */
  readonly kept: Uint8Array | null
}

/** Values that every change alters: growing numbers, and sums of columns. Remainders of times, because the sum of millions would overflow. */
const STATE = [
  "SELECT value FROM meta WHERE key = 'epoch'",
  "SELECT count(*), count(deleted_at), max(updated_at) FROM applications",
  "SELECT count(*), count(deleted_at), max(updated_at), sum(version), sum(hold_until % 1000000007), sum(breaker_until % 1000000007), sum(length(protection)) FROM endpoints",
  "SELECT count(*), max(updated_at) FROM policies",
  "SELECT count(*), max(updated_at), sum(version) FROM entries",
  "SELECT count(*), max(seq), sum(expunged) FROM messages",
  `SELECT status, count(*), max(seq), sum(attempt_count), sum(stalls), sum(ordered), count(discarded_at),
          sum(next_retry_at % 1000000007), sum(last_attempted_at % 1000000007)
     FROM webhook_deliveries GROUP BY status ORDER BY status`,
  "SELECT count(*), max(seq), sum(length(response_body)) FROM attempts",
  "SELECT count(*), sum(attempts), max(hour) FROM attempt_rollups",
  "SELECT count(*), max(seq), sum(done), sum(updated_at % 1000000007) FROM tasks",
  "SELECT count(*), max(seq), max(token) FROM in_flight",
]

export class Source {
  readonly path: string
  readonly #connection: Connection
  readonly #lock: Ownership

  private constructor(path: string, connection: Connection, lock: Ownership) {
    this.path = path
    this.#connection = connection
    this.#lock = lock
  }

  static open(given: string): Source {
    if (!existsSync(given)) throw unavailable(`there is no file ${given}`)
    const path = realpathSync(given)
    recoverFromFailedSync(path)
    const connection = openFile(path)
    try {
      return new Source(path, connection, lockOut(path, connection))
    } catch (error) {
      connection.close()
      throw error
    }
  }

  all(sql: string): SourceRow[] {
    return this.chunk(sql, [], Number.POSITIVE_INFINITY)
  }

  /** Rows until they have `mostBytes` bytes. */
  chunk(sql: string, values: readonly SQLInputValue[], mostBytes: number): SourceRow[] {
    const rows: SourceRow[] = []
    let bytes = 0
    for (const row of this.each(sql, values)) {
      rows.push(row)
      for (const value of Object.values(row)) if (value instanceof Uint8Array) bytes += value.length
      if (bytes >= mostBytes) break
    }
    return rows
  }

  *each(sql: string, values: readonly SQLInputValue[] = []): Generator<SourceRow> {
    try {
      yield* this.#connection.sql(sql).iterate(...values)
    } catch (error) {
      throw unavailable(`${this.path} cannot be read: ${describe(error)}`)
    }
  }

  count(sql: string): number {
    return this.all(`SELECT count(*) AS n FROM (${sql})`)[0]!.n as number
  }

  columns(table: string): string[] {
    return this.chunk("SELECT name FROM pragma_table_info(?)", [table], Number.POSITIVE_INFINITY).map(
      ({ name }) => name as string,
    )
  }

  refuseMoved(): void {
    refuseMoved(this.path, this.#connection)
  }

  /**
   * No process opens the file or sends with it afterwards. Throws if its state has changed: with the write lock, each send comes before
   * the check or after the mark. This is the only write to the file.
   */
  markMoved(to: string, state: string): void {
    const connection = new Connection(this.path)
    try {
      connection.sql("BEGIN IMMEDIATE").run()
      this.refuseChanged(state)
      markMoved(connection, to)
      connection.commit()
    } catch (error) {
      if (error instanceof PosthornError) throw error
      throw unavailable(`${this.path} cannot be marked as moved: ${describe(error)}`)
    } finally {
      connection.close()
    }
  }

  refuseChanged(state: string): void {
    if (this.state() !== state) throw changedMeanwhile(this.path)
  }

  /** Differs after any change of the data. */
  state(): string {
    const found = STATE.map((sql) => this.all(sql).map((row) => Object.values(row)))
    return createHash("sha256").update(JSON.stringify(found)).digest("hex")
  }

  key(): SourceKey {
    const [bound] = this.all("SELECT value FROM meta WHERE key = 'encryption_key'")
    const given = givenEncryptionKey(undefined)
    const key = given ?? readKeyFile(`${this.path}.key`)
    const { fingerprint } = createVault(key, () => {})
    if (bound === undefined || bound.value === fingerprint) return { fingerprint, kept: given ? null : key }
    throw new PosthornError(
      "wrong_encryption_key",
      `the secrets in ${this.path} were encrypted with key ${bound.value}, not with ${given ? "POSTHORN_ENCRYPTION_KEY" : `${this.path}.key`} (${fingerprint}): give the key it was created with`,
    )
  }

  close(): void {
    this.#connection.close()
    this.#lock.release()
  }
}

function openFile(path: string): Connection {
  let connection: Connection | null = null
  try {
    connection = new Connection(path, { readOnly: true })
    const { user_version: version } = connection.sql("PRAGMA user_version").get() as { user_version: number }
    if (version !== MIGRATIONS.length) throw incompatible(path, version)
    return connection
  } catch (error) {
    connection?.close()
    if (error instanceof PosthornError) throw error
    throw unavailable(`${path} cannot be opened as a Posthorn database: ${describe(error)}`)
  }
}

function readKeyFile(file: string): Uint8Array {
  if (existsSync(file)) return parseEncryptionKey(readFileSync(file, "utf8"), file)
  throw unavailable(`the encryption key ${file} is not there: put it back, or set POSTHORN_ENCRYPTION_KEY`)
}

function incompatible(path: string, version: number): PosthornError {
  if (version === 0) return new PosthornError("store_incompatible", `${path} is not a Posthorn database`)
  const mend =
    version > MIGRATIONS.length
      ? "it was written by a newer Posthorn; update this one"
      : "start this Posthorn on it once, then stop it and try again"
  return new PosthornError(
    "store_incompatible",
    `${path} has schema ${version}, this program knows ${MIGRATIONS.length}: ${mend}`,
  )
}

function changedMeanwhile(path: string): PosthornError {
  const text = `${path} was changed while it was moved: stop every process that uses it, and begin again with an empty database`
  return new PosthornError("conflict", text, { field: "from" })
}

function unavailable(text: string): PosthornError {
  return new PosthornError("store_unavailable", text, { field: "from" })
}

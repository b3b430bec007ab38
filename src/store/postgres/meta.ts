/** The table `meta`: the encryption key of the store, and its health. */
import { randomBytes } from "node:crypto"
import { PosthornError } from "../../core/errors.ts"
import { refuseWrongKey } from "../refusals.ts"
import { statement } from "../statements.ts"
import type { Database } from "./connection.ts"
import type { Context, Operation } from "./context.ts"

const PUT_ONCE = statement(
  "meta.put-once",
  "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT DO NOTHING",
)
const GET = statement("meta.get", "SELECT value FROM meta WHERE key = $1")

/** Stores the value unless there is one; returns the stored value. */
async function firstValue({ database }: Context, key: string, value: string): Promise<string> {
  await database.run(PUT_ONCE, [key, value])
  const [row] = await database.run(GET, [key])
  return row!.value as string
}

/** Replaces the key's fingerprint during a move to this database: no key matches. */
export const UNFINISHED_MOVE = "(of a move that is not finished)"

export const bindEncryptionKey: Operation<"bindEncryptionKey"> = async (context, fingerprint) => {
  const bound = await firstValue(context, "encryption_key", fingerprint)
  if (bound === UNFINISHED_MOVE)
    throw new PosthornError(
      "store_incompatible",
      'a move to this database is not finished: run "posthorn migrate" again, or give another database',
    )
  refuseWrongKey(bound, fingerprint)
}

/** Without a given key, all processes share the one that the first of them stored. */
export function keyFromStore(context: Context): Promise<string> {
  return firstValue(context, "generated_encryption_key", randomBytes(32).toString("hex"))
}

const CHECK = statement(
  "meta.check",
  `INSERT INTO meta (key, value) VALUES ('checked', '0')
   ON CONFLICT (key) DO UPDATE SET value = 1 - meta.value::int
   RETURNING current_setting('server_version') AS version`,
)
const FILL = statement("meta.fill", "INSERT INTO meta (key, value) VALUES ('room', $1)")
/** Room for one large message: with less, a send may be refused. Random bytes, since PostgreSQL compresses. */
const LEAST_FREE_BYTES = 2 * 1024 * 1024

/** Writes a row, as every call does. A full disk still takes a small write, so after a refusal a large one is tried. */
export const check: Operation<"check"> = async ({ database }) => {
  if (database.wasFull) await requireRoom(database)
  const [row] = await database.run(CHECK, [])
  return { kind: "postgres", version: row!.version as string }
}

async function requireRoom(database: Database): Promise<void> {
  const takenBack = new PosthornError("store_full", "taken back")
  const filler = randomBytes(LEAST_FREE_BYTES / 2).toString("hex")
  try {
    await database.transaction(async (runner) => {
      await runner.run(FILL, [filler])
      throw takenBack
    })
  } catch (error) {
    if (error !== takenBack) throw error
  }
  database.wasFull = false
}

/** What the store does about itself: its encryption key and its health. */
import { randomBytes } from "node:crypto"
import { PosthornError } from "../../core/errors.ts"
import type { StoreHealth } from "../store.ts"
import type { Context } from "./context.ts"
import type { Statement } from "./statement.ts"

const PUT_ONCE: Statement = {
  name: "meta.put-once",
  text: "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT DO NOTHING",
}
const GET: Statement = { name: "meta.get", text: "SELECT value FROM meta WHERE key = $1" }

/** The first value that anybody put there. */
async function firstValue({ database }: Context, key: string, value: string): Promise<string> {
  await database.run(PUT_ONCE, [key, value])
  const [row] = await database.run(GET, [key])
  return row!.value as string
}

/** In place of a key's fingerprint while a store is being moved here: no key fits it. */
export const UNFINISHED_MOVE = "(of a move that is not finished)"

/** The first key is remembered by its fingerprint; another one could not read the secrets. */
export async function bindEncryptionKey(context: Context, fingerprint: string): Promise<void> {
  const bound = await firstValue(context, "encryption_key", fingerprint)
  if (bound === UNFINISHED_MOVE)
    throw new PosthornError(
      "store_incompatible",
      'a move to this database is not finished: run "posthorn migrate" again, or give another database',
    )
  if (bound !== fingerprint) {
    const text = `the secrets in this store were encrypted with key ${bound}, not with this one (${fingerprint}): give the key it was created with`
    throw new PosthornError("wrong_encryption_key", text)
  }
}

/** When nobody gives a key, all processes share the one that the first of them left here. */
export function keyFromStore(context: Context): Promise<string> {
  return firstValue(context, "generated_encryption_key", randomBytes(32).toString("hex"))
}

const CHECK: Statement = {
  name: "meta.check",
  text: `
    INSERT INTO meta (key, value) VALUES ('checked', '0')
    ON CONFLICT (key) DO UPDATE SET value = 1 - meta.value::int
    RETURNING current_setting('server_version') AS version`,
}

/** A write that needs the server and its disk as every other. */
export async function check({ database }: Context): Promise<StoreHealth> {
  const [row] = await database.run(CHECK, [])
  return { kind: "postgres", version: row!.version as string }
}

/** The table `meta`: tokens, the encryption key of the store, and its health. */
import { statfsSync } from "node:fs"
import { dirname } from "node:path"
import { PosthornError } from "../../core/errors.ts"
import { refuseWrongKey } from "../refusals.ts"
import type { Context, Operation } from "./context.ts"

/** The first token of this opening of the file, above the tokens of every earlier opening. */
export function openTokens({ connection }: Context): number {
  connection
    .sql(
      "INSERT INTO meta VALUES ('epoch', '1') ON CONFLICT DO UPDATE SET value = CAST(value AS INTEGER) + 1",
    )
    .run()
  const row = connection.sql("SELECT CAST(value AS INTEGER) AS epoch FROM meta WHERE key = 'epoch'").get()
  return (row!.epoch as number) * 2 ** 32
}

export const bindEncryptionKey: Operation<"bindEncryptionKey"> = ({ connection }, fingerprint) => {
  connection.sql("INSERT INTO meta VALUES ('encryption_key', ?) ON CONFLICT DO NOTHING").run(fingerprint)
  const row = connection.sql("SELECT value FROM meta WHERE key = 'encryption_key'").get()
  refuseWrongKey(row!.value, fingerprint)
}

/** Room for one large message: with less, a send may be refused. */
const LEAST_FREE_BYTES = 2 * 1024 * 1024

/** Writes a row, as every call does, and looks at how much room the disk has left. */
export const check: Operation<"check"> = ({ connection }) => {
  connection.sql("INSERT INTO meta VALUES ('checked', '0') ON CONFLICT DO UPDATE SET value = 1 - value").run()
  const file = connection.db.location()
  if (file !== null) {
    const { bavail, bsize } = statfsSync(dirname(file))
    if (bavail * bsize < LEAST_FREE_BYTES)
      throw new PosthornError("store_full", "the disk is full: less than 2 MiB are left; free some space")
  }
  return { kind: "sqlite", version: process.versions.sqlite ?? "" }
}

/** Where the key that secrets are encrypted with comes from: given, from the environment, or a file beside the database. */
import { randomBytes } from "node:crypto"
import { existsSync, linkSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { describe, PosthornError } from "./core/errors.ts"
import { parseEncryptionKey } from "./core/vault.ts"

const BYTES = 32

/** Null when neither an option nor the environment says. */
export function givenEncryptionKey(given: string | undefined): Uint8Array | null {
  if (given !== undefined) return parseEncryptionKey(given)
  const fromEnvironment = process.env.POSTHORN_ENCRYPTION_KEY
  return fromEnvironment === undefined ? null : parseEncryptionKey(fromEnvironment, "POSTHORN_ENCRYPTION_KEY")
}

export function encryptionKeyFor(databasePath: string, option: string | undefined): Uint8Array {
  const given = givenEncryptionKey(option)
  if (given !== null) return given
  if (databasePath === ":memory:") return randomBytes(BYTES)
  const file = `${databasePath}.key`
  try {
    if (!existsSync(file)) createKeyFile(file)
    return parseEncryptionKey(readFileSync(file, "utf8"), file)
  } catch (cause) {
    if (cause instanceof PosthornError) throw cause
    throw new PosthornError(
      "store_unavailable",
      `the encryption key ${file} cannot be read or created: ${describe(cause)}`,
      { cause },
    )
  }
}

/**
 * For its owner only, and never over one that another process has just made. It is written and synced under another name first:
 * a crash in between must not leave an empty key that nothing can be opened with.
 */
function createKeyFile(file: string): void {
  mkdirSync(dirname(file), { recursive: true })
  const draft = `${file}.${randomBytes(6).toString("hex")}`
  writeFileSync(draft, `${randomBytes(BYTES).toString("hex")}\n`, { mode: 0o600, flag: "wx", flush: true })
  try {
    linkSync(draft, file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error
  } finally {
    unlinkSync(draft)
  }
}

/** The encryption key of secrets: from an option, the environment, or a file beside the database. */
import { randomBytes } from "node:crypto"
import { existsSync, linkSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { describe, PosthornError } from "./core/errors.ts"
import { parseEncryptionKey } from "./core/vault.ts"

const BYTES = 32

/** Null: neither an option nor the environment has a key. */
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

/** Readable by its owner only. Written and synced under another name first, so that a crash leaves no empty key. Never replaces a key. */
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

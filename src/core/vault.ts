/** Encrypts stored secrets with AES-256-GCM. A secret is bound to its row, so that it cannot be moved to another row. */
import { createCipheriv, createDecipheriv, createHash } from "node:crypto"
import { invalid, PosthornError } from "./errors.ts"
import type { RandomBytes } from "./ids.ts"

const IV_BYTES = 12
const TAG_BYTES = 16

export interface Vault {
  seal(text: string, rowId: string): Uint8Array
  open(sealed: Uint8Array, rowId: string): string
  /** Identifies the key without revealing it. It is stored, so that a wrong key is noticed at start. */
  readonly fingerprint: string
}

export function parseEncryptionKey(text: string, field = "encryptionKey"): Uint8Array {
  const trimmed = typeof text === "string" ? text.trim() : ""
  const key = Buffer.from(trimmed, /^[0-9a-fA-F]{64}$/.test(trimmed) ? "hex" : "base64")
  if (key.length !== 32) throw invalid(field, "must be 32 bytes, as 64 hexadecimal digits or base64")
  return key
}

export function createVault(key: Uint8Array, randomBytes: RandomBytes): Vault {
  return {
    fingerprint: createHash("sha256")
      .update("posthorn encryption key")
      .update(key)
      .digest("hex")
      .slice(0, 16),
    seal(text, rowId) {
      const iv = new Uint8Array(IV_BYTES)
      randomBytes(iv)
      const cipher = createCipheriv("aes-256-gcm", key, iv).setAAD(Buffer.from(rowId))
      const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()])
      return Buffer.concat([iv, cipher.getAuthTag(), sealed])
    },
    open(sealed, rowId) {
      try {
        const decipher = createDecipheriv("aes-256-gcm", key, sealed.subarray(0, IV_BYTES))
        decipher.setAAD(Buffer.from(rowId)).setAuthTag(sealed.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
        return Buffer.concat([
          decipher.update(sealed.subarray(IV_BYTES + TAG_BYTES)),
          decipher.final(),
        ]).toString("utf8")
      } catch (cause) {
        throw new PosthornError(
          "wrong_encryption_key",
          `the secrets of ${rowId} cannot be decrypted with this key`,
          { cause },
        )
      }
    },
  }
}

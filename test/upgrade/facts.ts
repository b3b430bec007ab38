/** Facts about the file and the database that `make.ts` made. */
import type { PolicyInput } from "../../src/index.ts"

export interface Facts {
  /** A key of the application. */
  readonly token: string
  /** The ids of the messages to each endpoint, in order. */
  readonly sent: { readonly [uid: string]: readonly string[] }
}

export const ENCRYPTION_KEY = "5".repeat(64)
export const SECRET = `whsec_${Buffer.alloc(24, 7).toString("base64")}`
/** When the deferred messages are due. */
export const LATER = Date.UTC(2100, 0)
/** Nothing is removed, however old the files are. */
export const RETRY: PolicyInput = { delays: [3600], maxAttempts: 3, retention: {} }

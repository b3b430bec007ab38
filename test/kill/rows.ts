/** What the oracles read from the file, over a connection of their own. */
import { DatabaseSync } from "node:sqlite"

/** A message as its sender knows it. */
export interface AcceptedMessage {
  readonly sender: number
  readonly n: number
}

export interface MessageRow {
  readonly id: string
  readonly payload: Uint8Array
}

export interface DeliveryRow {
  readonly seq: number
  readonly id: string
  readonly message_id: string
  /** The endpoint's uid. */
  readonly endpoint: string
  readonly status: string
  readonly dead_reason: string | null
  readonly attempt_count: number
}

export interface AttemptRow {
  readonly id: string
  readonly delivery_id: string
  readonly status: "succeeded" | "failed" | "unknown"
  readonly response_status: number | null
  readonly response_body: Uint8Array | null
}

export type Query = <Row>(sql: string) => Row[]

export function withFile<T>(file: string, look: (all: Query) => T): T {
  const db = new DatabaseSync(file, { timeout: 5000 })
  try {
    return look(<Row>(sql: string) => db.prepare(sql).all() as Row[])
  } finally {
    db.close()
  }
}

/** The rows that the oracles read from the store, over a connection of their own. */

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

/** What alerts need of the channels. */
import type { Notification } from "./notification.ts"

export interface NotifiedChannel {
  readonly name: string
  /** Whether it gets notices about dead letters. */
  readonly deadLetters: boolean
  /** False: it gets nothing for now, and is told the rest when it can be read again. */
  readonly isReadable: boolean
}

/** `permanent`: refused for good, or the channel does not exist any more. */
export type DirectResult =
  | { readonly outcome: "delivered" }
  | { readonly outcome: "transient" | "permanent"; readonly detail: string }

export interface Notifier {
  channels(): Promise<readonly NotifiedChannel[]>
  /** Accepts the notification for delivery, once for each key. A channel that does not exist any more is skipped. */
  notify(channels: readonly string[], notification: Notification, idempotencyKey: string): Promise<void>
  /** Sends without the store, to a channel that was read before. Rejects for a fault of our own, such as a store that cannot be read. */
  sendNow(channel: string, notification: Notification): Promise<DirectResult>
}

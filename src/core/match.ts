/** Which endpoints want a message. */

export interface Subscription {
  /** Null takes every type. */
  readonly eventTypes: readonly string[] | null
  /** Null takes every message; otherwise the message must share a channel. */
  readonly channels: readonly string[] | null
}

export function wants(endpoint: Subscription, eventType: string, channels: readonly string[]): boolean {
  if (endpoint.eventTypes !== null && !endpoint.eventTypes.includes(eventType)) return false
  return endpoint.channels === null || endpoint.channels.some((channel) => channels.includes(channel))
}

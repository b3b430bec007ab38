/** Which endpoints want a message. */

export interface Subscription {
  /** Null takes every type. */
  readonly eventTypes: readonly string[] | null
  /** Null takes every message; otherwise the message must share a channel. */
  readonly channels: readonly string[] | null
}

export function wants(endpoint: Subscription, eventType: string, channels: readonly string[]): boolean {
  return wantsType(endpoint, eventType) && wantsChannels(endpoint, channels)
}

export function wantsType({ eventTypes }: Subscription, eventType: string): boolean {
  return eventTypes === null || eventTypes.includes(eventType)
}

export function wantsChannels(endpoint: Subscription, channels: readonly string[]): boolean {
  return endpoint.channels === null || endpoint.channels.some((channel) => channels.includes(channel))
}

/** Which endpoints want a message. */

export interface Subscription {
  /** Null: all types. */
  readonly eventTypes: readonly string[] | null
  /** Null: all messages. Otherwise a message must have one of these channels. */
  readonly channels: readonly string[] | null
}

export function wants(endpoint: Subscription, eventType: string, channels: readonly string[]): boolean {
  return wantsType(endpoint, eventType) && wantsChannels(endpoint, channels)
}

/** Whether a replay gives the message to an endpoint that has not got it. */
export function isReplayable(
  endpoint: Subscription,
  message: Readonly<{ eventType: string; channels: readonly string[]; expunged: boolean }>,
): boolean {
  return !message.expunged && wants(endpoint, message.eventType, message.channels)
}

export function wantsType({ eventTypes }: Subscription, eventType: string): boolean {
  return eventTypes === null || eventTypes.includes(eventType)
}

export function wantsChannels(endpoint: Subscription, channels: readonly string[]): boolean {
  return endpoint.channels === null || endpoint.channels.some((channel) => channels.includes(channel))
}

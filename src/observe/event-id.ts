/** Ids of events: the process that numbers them, the epoch in which its numbers go up without a hole, and the number. */

export interface EventId {
  readonly process: string
  readonly epoch: number
  readonly number: number
}

export function formatEventId({ process, epoch, number }: EventId): string {
  return `${process}-${epoch}-${number}`
}

/** Null: not an id of an event. */
export function parseEventId(text: string): EventId | null {
  const [, process, epoch, number] = /^([0-9a-f]{12})-(\d{1,9})-(\d{1,15})$/.exec(text) ?? []
  return process === undefined ? null : { process, epoch: Number(epoch), number: Number(number) }
}

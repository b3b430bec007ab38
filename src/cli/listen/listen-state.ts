/** What the live table of `posthorn listen` knows: the webhooks, the selected one, the connection. Every function returns a new state. */
import type { AgentEvent } from "../../agent/event.ts"
import type { AgentHandled } from "../../agent/options.ts"

export interface Webhook {
  /** Rises from row to row. */
  readonly number: number
  /** Of the last attempt. */
  readonly event: AgentEvent
  readonly at: Date
  /** Null: the local program has it. */
  readonly answer: AgentHandled | null
  /** A later row has the delivery's next attempts. */
  readonly isContinued: boolean
}

export interface ListenState {
  /** The newest last. */
  readonly webhooks: readonly Webhook[]
  readonly nextNumber: number
  /** The number of a webhook. Null: always the newest. */
  readonly selected: number | null
  /** Why there is no connection, or null. */
  readonly problem: string | null
  /** The outcome of the last key, until the next one. */
  readonly notice: string | null
}

export const EMPTY: ListenState = {
  webhooks: [],
  nextNumber: 1,
  selected: null,
  problem: null,
  notice: null,
}

const MOST_WEBHOOKS = 500
const MOST_BYTES = 32 * 1024 * 1024

/** Another attempt changes the row of its delivery; one that was asked for is a row of its own. */
export function arrived(state: ListenState, event: AgentEvent, at: Date): ListenState {
  const before = rowOf(state, event)
  if (before !== undefined && !(event.manual && before.answer !== null))
    return replaced(state, { ...before, event, answer: null })
  const earlier = before === undefined ? state : replaced(state, { ...before, isContinued: true })
  const row = { number: state.nextNumber, event, at, answer: null, isContinued: false }
  const webhooks = withinLimits([...earlier.webhooks, row])
  const isKept = webhooks.some((one) => one.number === state.selected)
  return { ...state, webhooks, nextNumber: row.number + 1, selected: isKept ? state.selected : null }
}

export function answered(state: ListenState, answer: AgentHandled): ListenState {
  const before = rowOf(state, answer.event)
  return before === undefined ? state : replaced(state, { ...before, answer })
}

export function selectedOf({ webhooks, selected }: ListenState): Webhook | null {
  return webhooks.find(({ number }) => number === selected) ?? webhooks.at(-1) ?? null
}

/** Behind the last row, the newest is selected again, also when others come. */
export function moved(state: ListenState, by: 1 | -1): ListenState {
  const { webhooks } = state
  const at = webhooks.findIndex(({ number }) => number === selectedOf(state)?.number)
  const next = Math.max(0, at + by)
  return { ...state, selected: next >= webhooks.length - 1 ? null : webhooks[next]!.number }
}

function rowOf({ webhooks }: ListenState, { deliveryId }: AgentEvent): Webhook | undefined {
  return webhooks.findLast(({ event }) => event.deliveryId === deliveryId)
}

function replaced(state: ListenState, webhook: Webhook): ListenState {
  const webhooks = state.webhooks.map((one) => (one.number === webhook.number ? webhook : one))
  return { ...state, webhooks }
}

/** The newest is always kept. */
function withinLimits(webhooks: readonly Webhook[]): readonly Webhook[] {
  let bytes = 0
  const first = webhooks.findLastIndex(({ event }, i) => {
    bytes += event.body.length
    const isNewest = i === webhooks.length - 1
    return !isNewest && (bytes > MOST_BYTES || webhooks.length - i > MOST_WEBHOOKS)
  })
  return webhooks.slice(first + 1)
}

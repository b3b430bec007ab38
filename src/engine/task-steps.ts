/** What each kind of task makes of the deliveries or messages that it comes to. */
import { wants } from "../core/match.ts"
import { cancel, expunge, reschedule, revive } from "../core/operate.ts"
import type { Policy } from "../core/policy.ts"
import type {
  Addition,
  Amendment,
  Delivery,
  DeliveryAction,
  Message,
  Store,
  Task,
  TaskStep,
} from "../store/store.ts"

export interface Planned
  extends Pick<TaskStep, "amendments" | "additions" | "expunged" | "looked" | "cursor"> {
  /** The delivery of each amendment. */
  readonly amended: readonly Delivery[]
}

interface Desk {
  readonly store: Store
  readonly defaultPolicy: Policy
}

const NOTHING = { amendments: [], additions: [], expunged: [], amended: [] }

export async function planStep(desk: Desk, task: Task, size: number, now: number): Promise<Planned> {
  switch (task.action) {
    case "retry":
    case "discard":
    case "cancel":
    case "send-now":
      return planDeliveries(desk, task.id, task.action, size, now)
    case "replay":
      return planReplay(desk, task, await desk.store.readTaskMessages(task.id, size), size)
    case "expunge":
      return planExpunge(desk, await desk.store.readTaskMessages(task.id, size), size, now)
    case "report":
      return { ...NOTHING, looked: 0, cursor: null }
    default:
      return task.action satisfies never
  }
}

async function planDeliveries(
  desk: Desk,
  taskId: string,
  action: DeliveryAction,
  size: number,
  now: number,
): Promise<Planned> {
  const deliveries = await desk.store.readTask(taskId, size)
  const amended = await toAmend(desk, action, deliveries, now)
  const amendments = amended.map((delivery) => amend(delivery, changeBy(action, delivery, desk, now)))
  return { ...NOTHING, amended, amendments, ...progress(deliveries, size) }
}

async function toAmend(desk: Desk, action: DeliveryAction, deliveries: readonly Delivery[], now: number) {
  if (action === "retry") return withWhatItTakes(desk, deliveries)
  // One that is due already goes out by itself.
  return action === "send-now"
    ? deliveries.filter(({ dated, nextRetryAt }) => !dated && (nextRetryAt ?? 0) > now)
    : deliveries
}

function changeBy(action: DeliveryAction, delivery: Delivery, desk: Desk, now: number): Amendment["change"] {
  switch (action) {
    case "retry":
      return revive(delivery, now)
    case "discard":
      return { discardedAt: now }
    case "cancel":
      return cancel(delivery, desk.defaultPolicy, now)
    case "send-now":
      return reschedule(delivery, now, now)
    default:
      return action satisfies never
  }
}

/** Without those whose endpoint or payload is gone: sent again they would only be called off, and their reason lost. */
async function withWhatItTakes({ store }: Desk, deliveries: readonly Delivery[]): Promise<Delivery[]> {
  const gone = new Set<string>()
  for (const { appId, endpointId } of new Map(deliveries.map((one) => [one.endpointId, one])).values()) {
    if ((await store.getEndpoint(appId, endpointId)) === null) gone.add(endpointId)
  }
  const messages = await store.getMessages([...new Set(deliveries.map((one) => one.messageId))], false)
  for (const { id, expunged } of messages) if (expunged) gone.add(id)
  return deliveries.filter(({ endpointId, messageId }) => !gone.has(endpointId) && !gone.has(messageId))
}

/** The messages that the endpoint would have got, had it been there: the store adds those that it has not. */
async function planReplay(
  { store }: Desk,
  { filter }: Task,
  messages: readonly Message[],
  size: number,
): Promise<Planned> {
  const endpoint = await store.getEndpoint(filter.appId!, filter.endpointId!)
  // It was deleted meanwhile: the task ends here.
  if (endpoint === null) return { ...NOTHING, looked: messages.length, cursor: null }
  const additions: Addition[] = messages
    .filter(({ expunged, eventType, channels }) => !expunged && wants(endpoint, eventType, channels))
    .map(({ id }) => ({ messageId: id, endpointId: endpoint.id, manual: true }))
  return { ...NOTHING, additions, ...progress(messages, size) }
}

async function planExpunge(
  { store, defaultPolicy }: Desk,
  messages: readonly Message[],
  size: number,
  now: number,
): Promise<Planned> {
  const amended: Delivery[] = []
  for (const { id } of messages) {
    const page = { limit: 1000, order: "ascending", from: null, back: false } as const
    amended.push(...(await store.listDeliveries({ messageId: id, live: true }, page)))
  }
  return {
    ...NOTHING,
    amended,
    amendments: amended.map((delivery) => amend(delivery, expunge(delivery, defaultPolicy, now))),
    expunged: messages.filter(({ expunged }) => !expunged).map(({ id }) => id),
    ...progress(messages, size),
  }
}

function amend({ seq, status, attemptCount }: Delivery, change: Amendment["change"]): Amendment {
  return { seq, expectedStatus: status, expectedAttemptCount: attemptCount, change }
}

function progress(rows: readonly { readonly seq: number }[], size: number) {
  return { looked: rows.length, cursor: rows.length < size ? null : rows.at(-1)!.seq }
}

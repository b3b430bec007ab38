/** Plans one step of a task: the changes to the next deliveries or messages, by kind of task. */
import { isReplayable } from "../core/match.ts"
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
import { policyOf } from "./target.ts"

export interface Planned
  extends Pick<TaskStep, "amendments" | "additions" | "expunged" | "looked" | "cursor"> {
  /** The delivery of each amendment. */
  readonly amended: readonly Delivery[]
  /** Before the step: the endpoint is enabled, and the tasks are created with it. */
  readonly enabling: { readonly endpointId: string; readonly tasks: readonly Task[] } | null
}

interface Planner {
  readonly store: Store
  readonly defaultPolicy: Policy
}

const NOTHING = { amendments: [], additions: [], expunged: [], amended: [], enabling: null }

export async function planStep(planner: Planner, task: Task, size: number, now: number): Promise<Planned> {
  switch (task.action) {
    case "retry":
    case "discard":
    case "cancel":
    case "send-now":
      return planDeliveries(planner, task.id, task.action, size, now)
    case "enable":
      return planEnable(planner, task, size, now)
    case "replay":
      return planReplay(planner, task, await planner.store.readTaskMessages(task.id, size), size)
    case "expunge":
      return planExpunge(planner, await planner.store.readTaskMessages(task.id, size), size, now)
    case "report":
      return { ...NOTHING, looked: 0, cursor: null }
    default:
      return task.action satisfies never
  }
}

async function planDeliveries(
  planner: Planner,
  taskId: string,
  action: Exclude<DeliveryAction, "enable">,
  size: number,
  now: number,
): Promise<Planned> {
  const deliveries = await planner.store.readTask(taskId, size)
  const amended = await toAmend(planner, action, deliveries, now)
  const amendments = amended.map((delivery) => amend(delivery, changeBy(action, delivery, planner, now)))
  return { ...NOTHING, amended, amendments, ...progress(deliveries, size) }
}

async function toAmend(
  planner: Planner,
  action: Exclude<DeliveryAction, "enable">,
  deliveries: readonly Delivery[],
  now: number,
) {
  if (action === "retry") return sendable(planner, deliveries)
  // A delivery that is due already is sent without the task.
  return action === "send-now"
    ? deliveries.filter(({ dated, nextRetryAt }) => !dated && (nextRetryAt ?? 0) > now)
    : deliveries
}

function changeBy(
  action: Exclude<DeliveryAction, "enable">,
  delivery: Delivery,
  planner: Planner,
  now: number,
): Amendment["change"] {
  switch (action) {
    case "retry":
      return revive(delivery, now)
    case "discard":
      return { discardedAt: now }
    case "cancel":
      return cancel(delivery, planner.defaultPolicy, now)
    case "send-now":
      return reschedule(delivery, now, now)
    default:
      return action satisfies never
  }
}

/**
 * Cancels the deliveries that wait for a disabled endpoint, and enables it when none is left: a crash at any time leaves it disabled, with the
 * task running. A request that ends meanwhile changes its delivery after the step has read it, so the task reads from the start until it
 * finds nothing.
 */
async function planEnable(planner: Planner, task: Task, size: number, now: number): Promise<Planned> {
  const { store } = planner
  const endpoint = await store.getEndpoint(task.filter.appId!, task.filter.endpointId!)
  // Deleted; or a crash came between enabling the endpoint and the end of the task.
  if (!endpoint?.disabled) return { ...NOTHING, looked: 0, cursor: null }
  const amended = await store.readTask(task.id, size)
  const looked = amended.length
  if (looked === 0 && task.cursor === 0) {
    const tasks = await tasksAfterEnabling(store, task, now)
    return { ...NOTHING, enabling: { endpointId: endpoint.id, tasks }, looked, cursor: null }
  }
  const policy = policyOf(endpoint, planner.defaultPolicy)
  const amendments = amended.map((delivery) => amend(delivery, cancel(delivery, policy, now)))
  return { ...NOTHING, amended, amendments, looked, cursor: looked < size ? 0 : amended.at(-1)!.seq }
}

/** The data of a task with the action `enable`. */
export interface EnableData {
  readonly replayTaskId: string | null
  /** The messages since then are replayed. */
  readonly since: number | null
}

async function tasksAfterEnabling(store: Store, task: Task, now: number): Promise<Task[]> {
  const { replayTaskId, since }: EnableData = JSON.parse(task.data!)
  if (replayTaskId === null || since === null) return []
  const { appId, endpointId } = task.filter
  const filter = { appId: appId!, endpointId: endpointId!, since }
  const total = await store.countMessages(filter)
  return [
    {
      ...task,
      id: replayTaskId,
      action: "replay",
      type: "endpoint.replay",
      filter,
      data: null,
      total,
      createdAt: now,
      updatedAt: now,
    },
  ]
}

/** Leaves out deliveries whose endpoint or payload is gone: a retry would cancel them and lose their dead reason. */
async function sendable({ store }: Planner, deliveries: readonly Delivery[]): Promise<Delivery[]> {
  const gone = new Set<string>()
  for (const { appId, endpointId } of new Map(deliveries.map((one) => [one.endpointId, one])).values()) {
    if ((await store.getEndpoint(appId, endpointId)) === null) gone.add(endpointId)
  }
  const messages = await store.getMessages([...new Set(deliveries.map((one) => one.messageId))], false)
  for (const { id, expunged } of messages) if (expunged) gone.add(id)
  return deliveries.filter(({ endpointId, messageId }) => !gone.has(endpointId) && !gone.has(messageId))
}

/** Adds a delivery for each message that the endpoint subscribes to; the store skips deliveries that exist. */
async function planReplay(
  { store }: Planner,
  { filter }: Task,
  messages: readonly Message[],
  size: number,
): Promise<Planned> {
  const endpoint = await store.getEndpoint(filter.appId!, filter.endpointId!)
  // The endpoint was deleted meanwhile: the task ends.
  if (endpoint === null) return { ...NOTHING, looked: messages.length, cursor: null }
  const additions: Addition[] = messages
    .filter((message) => isReplayable(endpoint, message))
    .map(({ id }) => ({ messageId: id, endpointId: endpoint.id, manual: true }))
  return { ...NOTHING, additions, ...progress(messages, size) }
}

async function planExpunge(
  { store, defaultPolicy }: Planner,
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

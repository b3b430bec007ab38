/** The return of a disabled endpoint: its waiting deliveries are sent or discarded, messages that it missed are replayed or not. */
import { PosthornError } from "../core/errors.ts"
import { optionalOneOf, refuseUnknown, requireObject } from "../core/input.ts"
import { isReplayable } from "../core/match.ts"
import type { EnableData } from "../engine/task-steps.ts"
import type { Endpoint, Task } from "../store/store.ts"
import { countLane } from "./lane-count.ts"
import { date, type ResourceContext } from "./resource-context.ts"
import { newTask, startTask } from "./tasks.ts"

export interface EnableInput {
  /** Its waiting deliveries: `send` them (the default), or `discard` them first (`dead`, `cancelled`). */
  held?: "send" | "discard"
  /** The messages that were sent while the endpoint was disabled: `replay` them, or `leave` them out (the default). */
  missed?: "replay" | "leave"
}

export interface EnablePreview {
  readonly disabled: boolean
  readonly disabledAt: Date | null
  readonly disabledReason: Endpoint["disabledReason"]
  /** Waiting deliveries of the endpoint. */
  readonly held: number
  /** True: `held` counts at least 10 000 of them, and there may be more. */
  readonly heldIsLowerBound: boolean
  /** Messages that were sent since `disabledAt` and that the endpoint would have got; null: it is not known since when it is disabled. */
  readonly missed: number | null
  /** True: `missed` counts only the newest 10 000 messages of the application. */
  readonly missedIsLowerBound: boolean
}

/** Tasks that follow; a replay begins when the discard has ended. */
export interface EnableTasks {
  readonly discardTaskId: string | null
  readonly replayTaskId: string | null
}

const MOST_LOOKED_AT = 10_000
const PAGE = 1000

export async function previewEnabling(context: ResourceContext, row: Endpoint): Promise<EnablePreview> {
  const { disabled, disabledReason } = row
  const held = disabled
    ? await countLane(context.store, row.id, MOST_LOOKED_AT)
    : { count: 0, isLowerBound: false }
  const { missed, missedIsLowerBound } = disabled
    ? await countMissed(context, row)
    : { missed: 0, missedIsLowerBound: false }
  return {
    ...{ disabled, disabledAt: date(row.disabledAt), disabledReason },
    ...{ held: held.count, heldIsLowerBound: held.isLowerBound, missed, missedIsLowerBound },
  }
}

/**
 * The newest messages first, and no further than the time of the disabling: a filter by time would read every message that the application
 * ever had. Concurrent sends may be stored out of order by some milliseconds, so a page without a newer message ends the search.
 */
async function countMissed(
  { store }: ResourceContext,
  endpoint: Endpoint,
): Promise<Pick<EnablePreview, "missed" | "missedIsLowerBound">> {
  const { appId, disabledAt } = endpoint
  if (disabledAt === null) return { missed: null, missedIsLowerBound: false }
  let missed = 0
  let from: number | null = null
  for (let looked = 0; looked < MOST_LOOKED_AT; looked += PAGE) {
    const page = { limit: PAGE, order: "descending", from, back: false } as const
    const messages = await store.listMessages({ appId }, page, false)
    const since = messages.filter(({ receivedAt }) => receivedAt >= disabledAt)
    missed += since.filter((message) => isReplayable(endpoint, message)).length
    if (messages.length < PAGE || since.length === 0) return { missed, missedIsLowerBound: false }
    from = messages.at(-1)!.seq
  }
  return { missed, missedIsLowerBound: true }
}

export function parseEnable(input: EnableInput): Required<EnableInput> {
  requireObject(input, "options")
  refuseUnknown(input, ["held", "missed"], "")
  return {
    held: optionalOneOf(input.held, "held", ["send", "discard"]) ?? "send",
    missed: optionalOneOf(input.missed, "missed", ["replay", "leave"]) ?? "leave",
  }
}

/** The replay of a choice; null: there is none. It begins with the messages of the millisecond in which the endpoint was disabled. */
export async function replayOf(
  context: ResourceContext,
  { id, appId, disabledAt }: Endpoint,
  { missed }: Required<EnableInput>,
): Promise<Task | null> {
  if (missed === "leave") return null
  if (disabledAt === null)
    throw new PosthornError(
      "conflict",
      `it is not known since when endpoint "${id}" is disabled; enable it, and use replayMissing with a time`,
    )
  const filter = { appId, endpointId: id, since: disabledAt }
  return newTask(context, "replay", "endpoint.replay", filter)
}

/** A task, which enables the endpoint when nothing waits any more: nothing can be sent that was to be discarded. */
export async function discardAndEnable(
  context: ResourceContext,
  { id, appId }: Endpoint,
  replay: Task | null,
): Promise<EnableTasks> {
  const data: EnableData = { replayTaskId: replay?.id ?? null, since: replay?.filter.since ?? null }
  const task = await newTask(context, "enable", "endpoint.enable", { appId, endpointId: id, live: true })
  const { id: discardTaskId } = await startTask(context, { ...task, data: JSON.stringify(data) })
  context.recall({ endpointId: id })
  return { discardTaskId, replayTaskId: data.replayTaskId }
}

/** Rejects with `conflict` while a task discards the waiting deliveries: enabling the endpoint now would send them. */
export async function refuseWhileDiscarding({ store, orgId }: ResourceContext, id: string): Promise<void> {
  const page = { limit: 1000, order: "descending", from: null, back: false } as const
  const running = await store.listTasks(orgId, page, { status: "running", types: ["endpoint.enable"] })
  const task = running.find(({ filter }) => filter.endpointId === id)
  if (task !== undefined)
    throw new PosthornError(
      "conflict",
      `endpoint "${id}" is being enabled: task "${task.id}" discards its waiting deliveries first; wait for it, or cancel it`,
    )
}

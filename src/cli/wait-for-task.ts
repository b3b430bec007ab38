/** Waits for a task and shows its progress. */
import { setTimeout as sleep } from "node:timers/promises"
import { Backoff } from "../core/backoff.ts"
import { type Api, ApiFailure, path } from "./api.ts"
import type { Output } from "./output.ts"
import { noProgress, progressOn } from "./progress.ts"

export interface Task {
  readonly id: string
  readonly status: "running" | "finished" | "failed"
  readonly task: string
  readonly updatedAt: string
  readonly data: {
    readonly total?: number
    readonly done?: number
    readonly changed?: number
    readonly cancelled?: boolean
  }
}

export type StartedTask = Omit<Task, "data">

/** Longer than the interval at which a worker looks for tasks. */
const PATIENCE_MS = 30_000

export const taskPath = (id: string) => path`/task/${id}`

/** Waits for the task unless `--no-wait` is given. */
export async function followTask(
  api: Api,
  out: Output,
  started: StartedTask,
  flags: { readonly "no-wait"?: boolean },
  said = ending,
): Promise<number> {
  const task = flags["no-wait"] ? null : await endOfStarted(api, out, started.id)
  if (task !== null) return sayEnd(out, task, said)
  out.say(started, started.id)
  return 0
}

/** Returns the exit code: 0 when the task has finished. */
export async function waitForTask(api: Api, out: Output, id: string): Promise<number> {
  return sayEnd(out, await endOf(api, out, id), ending)
}

function sayEnd(out: Output, task: Task, said: (task: Task) => string): number {
  out.say(task, said(task))
  return task.status === "finished" ? 0 : 1
}

/** Null: a key of an application started the task, and only keys of the organization read tasks. The task runs without being watched. */
export async function endOfStarted(api: Api, out: Output, id: string): Promise<Task | null> {
  try {
    return await endOf(api, out, id)
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.status !== 403) throw error
    out.note(
      `Task ${id} is started. Its progress is not shown: only a key of the whole organization reads tasks.`,
    )
    return null
  }
}

async function endOf(api: Api, out: Output, id: string): Promise<Task> {
  const progress = process.stderr.isTTY && !out.json ? progressOn(process.stderr, "deliveries") : noProgress
  const onInterrupt = () => {
    progress.end()
    out.note(`The task continues: posthorn tasks watch ${id}`)
    process.exit(130)
  }
  process.once("SIGINT", onInterrupt)
  await api.runTasks()
  try {
    return await untilOver(api, id, ({ task: what, data: { done = 0, total = 0 } }) =>
      progress.show(what, done, total),
    )
  } finally {
    progress.end()
    process.off("SIGINT", onInterrupt)
  }
}

async function untilOver(api: Api, id: string, show: (task: Task) => void): Promise<Task> {
  let movedAt = performance.now()
  let before = -1
  const backoff = new Backoff({ firstMs: 50, longestMs: 1000, random: Math.random })
  for (;;) {
    const task = await api.get<Task>(taskPath(id))
    show(task)
    if (task.status !== "running") return task
    const { done = 0 } = task.data
    if (done !== before) movedAt = performance.now()
    else if (performance.now() - movedAt > PATIENCE_MS)
      throw new Error(
        `nobody works on task ${id}: it goes on when a process delivers (posthorn serve, posthorn worker)`,
      )
    before = done
    await sleep(backoff.nextMs())
  }
}

export function ending({ id, task, status, data }: Task): string {
  const { total = 0, changed = 0, cancelled } = data
  const how = cancelled ? "was cancelled" : status === "finished" ? "is finished" : `is ${status}`
  return `${task} ${how}: ${changed} of ${total} (${id})`
}

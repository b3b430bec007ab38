/** Tasks: action, progress, the caller who started them, and a button that stops them. */
import { useEffect, useRef } from "preact/hooks"
import { api, pathTo } from "../api.ts"
import { exactNumber, percent } from "../format.ts"
import { type List, type Resource, useResource } from "../resource.ts"
import type { Task } from "../types.ts"
import { Badge, Button } from "../ui/basics.tsx"
import { ask } from "../ui/dialog.tsx"
import { notify } from "../ui/notices.tsx"
import type { Change } from "./changes.tsx"

const TITLES: { readonly [kind in Task["task"]]?: string } = {
  "dead.retry": "Send dead letters again",
  "dead.discard": "Discard dead letters",
  "delivery.send-now": "Send now what waits",
  "endpoint.recover": "Recover an endpoint",
  "endpoint.replay": "Replay what an endpoint missed",
  "endpoint.bulk-replay": "Replay messages to an endpoint",
  "endpoint.delete": "Delete an endpoint",
  "endpoint.cancel": "Cancel what waits for an endpoint",
  "endpoint.enable": "Enable an endpoint",
  "application.delete": "Delete an application",
  "application.purge_content": "Remove payloads",
  "application.stats": "Count messages",
}

export const titleOfTask = ({ task }: Task) => TITLES[task] ?? task

/** As `taskOut` of the API writes it. */
interface Progress {
  readonly total?: number
  readonly done?: number
  readonly changed?: number
  readonly cancelled?: boolean
  /** The result of the task. */
  readonly [found: string]: unknown
}

export const progressOf = ({ data }: Task) => data as Progress

export function TaskState({ task }: { readonly task: Task }) {
  if (task.status === "running") return <Badge tone="info">running</Badge>
  if (task.status === "finished") return <Badge tone="good">finished</Badge>
  return <Badge tone="warn">{progressOf(task).cancelled ? "stopped" : "failed"}</Badge>
}

export function TaskProgress({ task }: { readonly task: Task }) {
  const { total = 0, done = 0, changed = 0 } = progressOf(task)
  const label = `${exactNumber(done)} of ${exactNumber(total)} looked at`
  return (
    <div class="task-progress">
      {task.status === "running" && <progress max={Math.max(1, total)} value={done} aria-label={label} />}
      <span>
        {task.status === "running" && `${percent(done, total)}, `}
        {exactNumber(changed)} changed of {exactNumber(total)}
      </span>
    </div>
  )
}

export function StopTask({ id, reload }: { readonly id: string; readonly reload: () => void }) {
  return (
    <Button
      needs="Change"
      kind="danger"
      onClick={() =>
        ask({
          title: "Stop this task?",
          text: <p>Deliveries that it changed stay changed. The others stay as they are.</p>,
          action: "Stop the task",
          kind: "danger",
          run: async () => {
            await api.post(pathTo("/task", id, "cancel"))
            notify("good", "The task is stopped.")
            reload()
          },
        })
      }
    >
      Stop
    </Button>
  )
}

const POLL_MS = 1000

/** Progress is in no event: it is read a second after the last answer while something runs. */
export function useProgress({ data, reload }: Resource<unknown>, isRunning: boolean): void {
  useEffect(() => {
    if (!isRunning) return
    const timer = setTimeout(reload, POLL_MS)
    return () => clearTimeout(timer)
  }, [isRunning, data])
}

/** Of the newest changes: by the id of the task that the change has started. */
export function useStarters(tasks: readonly Task[]): (task: Task) => Change | null {
  const ids = tasks.map(({ id }) => id).join()
  const { data, reload } = useResource<List<Change>>(ids === "" ? null : "/change", { limit: 250 })
  const before = useRef(ids)
  useEffect(() => {
    if (before.current !== "" && before.current !== ids) reload()
    before.current = ids
  }, [ids])
  const starters = new Map(data?.data.map((change) => [change.subject, change]))
  return ({ id }) => starters.get(id) ?? null
}

/** `posthorn tasks`: background tasks. */
import { action, type Group, PAGE_FLAGS } from "../command.ts"
import { choice, text } from "../flag.ts"
import { showList } from "../lists.ts"
import type { Output } from "../output.ts"
import { type Column, shortId, shortTime, time } from "../table.ts"
import { type Task, taskPath, waitForTask } from "../wait-for-task.ts"

const TASK = { name: "task", about: "the task's id" } as const

const COLUMNS: readonly Column<Task>[] = [
  { title: "ID", value: ({ id }) => id, short: shortId },
  { title: "TASK", value: ({ task }) => task },
  { title: "STATUS", value: stateOf },
  { title: "DONE", value: ({ data }) => data.done, right: true },
  { title: "OF", value: ({ data }) => data.total, right: true },
  { title: "CHANGED", value: ({ data }) => data.changed, right: true },
  { title: "UPDATED", value: ({ updatedAt }) => time(updatedAt), short: shortTime },
]

function stateOf({ status, data }: Task): string {
  return data.cancelled ? "cancelled" : status
}

function show(out: Output, task: Task): void {
  const { data, updatedAt, ...rest } = task
  out.record(task, { ...rest, ...data, updatedAt: time(updatedAt) })
}

export const command: Group = {
  summary: "tasks: work on many deliveries or messages that goes on by itself",
  actions: {
    list: action({
      summary: "list tasks, the newest first",
      flags: {
        status: choice(["running", "finished", "failed"], "in this state; cancelled ones have failed", {
          field: "status",
        }),
        task: text("TASK", "that do this, such as endpoint.recover", { field: "task" }),
        ...PAGE_FLAGS,
      },
      examples: ["posthorn tasks list", "posthorn tasks list --status running"],
      run: (run) =>
        showList(run, {
          route: "/task",
          query: run.fields,
          columns: COLUMNS,
          none: "There are no such tasks.",
        }),
    }),
    get: action({
      summary: "show a task and how far it is",
      args: [TASK],
      examples: ["posthorn tasks get TASK_ID"],
      async run({ api, out, args }) {
        show(out, await api.get(taskPath(args.task)))
      },
    }),
    cancel: action({
      summary: "stop a task; what it has done stays done",
      args: [TASK],
      examples: ["posthorn tasks cancel TASK_ID"],
      async run({ api, out, args }) {
        show(out, await api.post(`${taskPath(args.task)}/cancel`))
      },
    }),
    watch: action({
      summary: "wait for the end of a task; the exit code is 0 if it has done its work",
      args: [TASK],
      examples: ["posthorn tasks watch TASK_ID"],
      run: ({ api, out, args }) => waitForTask(api, out, args.task),
    }),
  },
}
